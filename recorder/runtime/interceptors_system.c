/* What the system tells when it is asked, but for the time (the pass knows those calls) and for what is read from
 * descriptors (interceptors_files.c): signal sets, limits, the names and options of sockets, terminals, users. */
#include "preload_library.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <termios.h>
#include <unistd.h>

/* -- sets of signals --------------------------------------------------------------------------- */

#define STORED(what) \
    if (result == 0) \
    tk_library_store(what, sizeof *what)
#define CHANGED(what) \
    tk_library_load(what, sizeof *what); \
    STORED(what)
#define READ(what) \
    if (what) \
    tk_library_load(what, sizeof *what)

TK_WRAP(int, sigemptyset, (sigset_t * set), (set), STORED(set))
TK_WRAP(int, sigfillset, (sigset_t * set), (set), STORED(set))
TK_WRAP(int, sigaddset, (sigset_t * set, int number), (set, number), CHANGED(set))
TK_WRAP(int, sigdelset, (sigset_t * set, int number), (set, number), CHANGED(set))
TK_WRAP(int, sigismember, (const sigset_t *set, int number), (set, number), READ(set))
TK_WRAP(int, sigpending, (sigset_t * set), (set), STORED(set))
TK_WRAP(int, sigprocmask, (int how, const sigset_t *set, sigset_t *old), (how, set, old), READ(set);
        if (old) STORED(old))
TK_WRAP(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *old), (how, set, old), READ(set);
        if (old) STORED(old))
TK_WRAP(int, sigaltstack, (const stack_t *stack, stack_t *old), (stack, old), READ(stack); if (old) STORED(old))

/* -- limits, what was used -------------------------------------------------------------------- */

TK_WRAP(int, getrlimit, (__rlimit_resource_t what, struct rlimit *limits), (what, limits), STORED(limits))
TK_WRAP(int, getrlimit64, (__rlimit_resource_t what, struct rlimit64 *limits), (what, limits), STORED(limits))
TK_WRAP(int, sysinfo, (struct sysinfo * told), (told), STORED(told))
TK_WRAP(int, statvfs, (const char *path, struct statvfs *told), (path, told), tk_string_load(path); STORED(told))
TK_WRAP(int, statvfs64, (const char *path, struct statvfs64 *told), (path, told), tk_string_load(path); STORED(told))
TK_WRAP(int, getgroups, (int most, gid_t *groups), (most, groups),
        if (most > 0 && result > 0) tk_library_store(groups, (size_t)result * sizeof *groups))
TK_WRAP(int, getitimer, (__itimer_which_t which, struct itimerval *told), (which, told), STORED(told))
TK_WRAP(int, setitimer, (__itimer_which_t which, const struct itimerval *time, struct itimerval *old),
        (which, time, old), READ(time);
        if (old) STORED(old))

/* What is left of a sleep that a signal has ended. */
#define LEFT(failed) \
    READ(time); \
    if (left && (failed)) \
    tk_library_store(left, sizeof *left)

TK_WRAP(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left),
        LEFT(result != 0 && errno == EINTR))
TK_WRAP(int, clock_nanosleep, (clockid_t clock, int flags, const struct timespec *time, struct timespec *left),
        (clock, flags, time, left), LEFT(result == EINTR && flags == 0))

/* -- sockets, terminals ----------------------------------------------------------------------- */

#define WRAP_PUT(name, to, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        socklen_t room = bytes ? *bytes : 0; \
        int result = TK_REAL(name)(__VA_ARGS__); \
        if (result == 0 && TK_IS_RECORDED()) { \
            int saved = errno; \
            tk_put(to, room, bytes); \
            errno = saved; \
        } \
        return result; \
    }

WRAP_PUT(getsockname, own, (int fd, struct sockaddr *restrict own, socklen_t *restrict bytes), fd, own, bytes)
WRAP_PUT(getpeername, peer, (int fd, struct sockaddr *restrict peer, socklen_t *restrict bytes), fd, peer, bytes)
WRAP_PUT(getsockopt, value, (int fd, int level, int option, void *restrict value, socklen_t *restrict bytes), fd, level,
         option, value, bytes)
TK_WRAP(int, setsockopt, (int fd, int level, int option, const void *value, socklen_t bytes),
        (fd, level, option, value, bytes), tk_library_load(value, bytes))
TK_WRAP(int, bind, (int fd, const struct sockaddr *own, socklen_t bytes), (fd, own, bytes), tk_library_load(own, bytes))
TK_WRAP(int, tcgetattr, (int fd, struct termios *told), (fd, told), STORED(told))
TK_WRAP(int, tcsetattr, (int fd, int when, const struct termios *attributes), (fd, when, attributes), READ(attributes))
