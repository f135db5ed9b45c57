/* The session that this process belongs to: where it gets a pool from, and how it hands that on to the programs that it
 * executes. `record` names both in the environment; the program itself never sees them there.
 *
 *     TRACEKIT_POOL=<fd>      the pool is inherited, and for one process
 *     TRACEKIT_POOL=@<name>   --follow-fork: a socket (abstract) at which each process may ask for one of its own */
#include "preload.h"

#include <alloca.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

extern char **environ;

static char library[4096];   /* the path of this library, as LD_PRELOAD names it */
static char preloaded[8192]; /* it, and with MPI the library of its wrappers, with a colon between */
static char session[108];    /* '@' and the socket's name; empty without --follow-fork */

int tk_following(void)
{
    return session[0] != 0;
}

/* By hand: the interposed string functions would record this. */
static size_t length_of(const char *string)
{
    size_t length = 0;
    while (string[length])
        length++;
    return length;
}

static int is_variable(const char *entry, const char *name)
{
    size_t length = 0;
    while (name[length] && entry[length] == name[length])
        length++;
    return !name[length] && entry[length] == '=';
}

/* The environment is edited in place: setenv would allocate, and main's envp must agree. */
static char **find_variable(const char *name)
{
    for (char **entry = environ; entry && *entry; entry++)
        if (is_variable(*entry, name))
            return entry;
    return NULL;
}

static void remove_variable(const char *name)
{
    char **entry = find_variable(name);
    for (; entry && *entry; entry++)
        entry[0] = entry[1];
}

/* `record` put this library first in LD_PRELOAD, then others of its own; what the user had there stands behind two
 * colons, between which the dynamic linker sees nothing. */
static void restore_environment(void)
{
    remove_variable("TRACEKIT_POOL");
    char **entry = find_variable("LD_PRELOAD");
    if (!entry)
        return;
    char *value = *entry + sizeof "LD_PRELOAD";
    size_t first = 0;
    while (value[first] && value[first] != ':')
        first++;
    size_t length = first;
    while (value[length] && !(value[length] == ':' && value[length + 1] == ':'))
        length++;
    if (length < sizeof preloaded && first < sizeof library) {
        memcpy(library, value, first);
        memcpy(preloaded, value, length);
    }
    if (value[length] && value[length + 2])
        memmove(value, value + length + 2, length_of(value + length + 2) + 1);
    else
        remove_variable("LD_PRELOAD");
}

/* In a program that is not instrumented too, so that it does not see the variables and its children get them. */
__attribute__((constructor)) void tk_join_session(void)
{
    char **entry = find_variable("TRACEKIT_POOL");
    const char *value = entry ? *entry + sizeof "TRACEKIT_POOL" : "";
    size_t length = length_of(value);
    if (value[0] != '@' || length >= sizeof session)
        return;
    memcpy(session, value, length + 1);
    restore_environment();
}

/* The descriptor of a pool for this process, -1 if there is none. */
int tk_inherited_pool(void)
{
    char **entry = find_variable("TRACEKIT_POOL");
    if (!entry)
        return -1;
    int descriptor = atoi(*entry + sizeof "TRACEKIT_POOL");
    return descriptor > 0 ? descriptor : -1;
}

void tk_hide_session(void)
{
    restore_environment();
}

static int receive_descriptor(int connection)
{
    char byte, control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    long got;
    do
        got = syscall(SYS_recvmsg, connection, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
        return -1;
    int descriptor;
    memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    return descriptor;
}

/* A connection to `record`, -1 if it is gone. */
int tk_connect(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = length_of(session);
    memcpy(address.sun_path, session, length);
    address.sun_path[0] = 0; /* abstract */
    int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connection < 0 ||
        syscall(SYS_connect, connection, &address, offsetof(struct sockaddr_un, sun_path) + length) == 0)
        return connection;
    syscall(SYS_close, connection);
    return -1;
}

/* Ask for a pool; `record` starts a collector for it before it answers. 0 if there is none. */
int tk_request_pool(int connection, const struct tk_request *request, struct tk_layout *layout)
{
    int found = 0, descriptor = -1;
    if (syscall(SYS_sendto, connection, request, sizeof *request, MSG_NOSIGNAL, NULL, 0) == sizeof *request)
        descriptor = receive_descriptor(connection);
    if (descriptor >= 0) {
        found = tk_map_pool(descriptor, layout);
        syscall(SYS_close, descriptor);
    }
    return found;
}

/* -- what is executed ------------------------------------------------------------------------- */

/* Not where the library cannot be found (chroot): the dynamic linker would complain. */
int tk_hands_on(void)
{
    int saved = errno;
    int found = session[0] && access(library, R_OK) == 0;
    errno = saved;
    return found;
}

/* Room for tk_hand_on: pointers, and the text of two variables. */
size_t tk_hand_on_bytes(char *const *from)
{
    size_t entries = 0, theirs = 0;
    for (; from && from[entries]; entries++)
        if (is_variable(from[entries], "LD_PRELOAD"))
            theirs = length_of(from[entries]);
    return (entries + 3) * sizeof(char *) + theirs + sizeof preloaded + sizeof session + 64;
}

static char *append(char *to, const char *text)
{
    size_t length = length_of(text);
    memcpy(to, text, length + 1);
    return to + length;
}

/* `from` with the session's variables, in `room`. No allocation: a child of vfork comes here too. */
char **tk_hand_on(char *const *from, char *room)
{
    char **to = (char **)room, **next = to;
    size_t entries = 0;
    const char *theirs = "";
    while (from && from[entries])
        entries++;
    char *text = (char *)(to + entries + 3);
    for (size_t index = 0; index < entries; index++) {
        if (is_variable(from[index], "LD_PRELOAD"))
            theirs = from[index] + sizeof "LD_PRELOAD";
        else if (!is_variable(from[index], "TRACEKIT_POOL"))
            *next++ = from[index];
    }
    *next++ = text;
    text = append(append(append(text, "LD_PRELOAD="), preloaded), "::");
    text = append(text, theirs);
    *next++ = ++text;
    append(append(text, "TRACEKIT_POOL="), session);
    *next = NULL;
    return to;
}
