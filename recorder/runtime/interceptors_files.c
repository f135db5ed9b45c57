/* System calls on file descriptors: the bytes that they read and write, and the order of threads that they make.
 *
 * Who reads from a pipe, a socket or an eventfd comes after who wrote what it read. Regular files order nothing: that a
 * byte was read after another one was written says nothing of it. */
#include "preload_library.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* The first `bytes` of what a vector of buffers leads to. */
static void each(void (*access)(const void *, size_t), const struct iovec *part, size_t parts, size_t bytes)
{
    for (size_t number = 0; number < parts && bytes > 0; number++) {
        size_t here = part[number].iov_len < bytes ? part[number].iov_len : bytes;
        access(part[number].iov_base, here);
        bytes -= here;
    }
}

/* -- what orders ------------------------------------------------------------------------------ */

#define ANY_SOCKET (TK_NO_ADDRESS | 1)

static unsigned port(const struct sockaddr_storage *end)
{
    if (end->ss_family == AF_INET)
        return ((const struct sockaddr_in *)end)->sin_port;
    return end->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)end)->sin6_port : 0;
}

/* A connection by TCP has the same two ports at both ends. Whose ends other sockets are is not known: they are one. */
static uint64_t socket_of(int fd)
{
    struct sockaddr_storage own, peer;
    socklen_t bytes = sizeof own, peers = sizeof peer, size = sizeof(int);
    int type;
    if (TK_REAL(getsockopt)(fd, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_STREAM ||
        TK_REAL(getsockname)(fd, (struct sockaddr *)&own, &bytes) ||
        TK_REAL(getpeername)(fd, (struct sockaddr *)&peer, &peers) || !port(&own) || !port(&peer))
        return ANY_SOCKET;
    unsigned one = port(&own), other = port(&peer);
    return tk_kernel_object(AF_INET, one < other ? one << 16 | other : other << 16 | one);
}

/* Those of one eventfd have one number, unless it is dup'ed. */
uint64_t tk_descriptor_object(int fd)
{
    struct stat status;
    int saved = errno;
    uint64_t object = 0;
    if (TK_REAL(fstat)(fd, &status) == 0) {
        if (S_ISFIFO(status.st_mode))
            object = tk_kernel_object(status.st_dev, status.st_ino);
        else if (S_ISSOCK(status.st_mode))
            object = socket_of(fd);
        else if ((status.st_mode & S_IFMT) == 0) /* an anonymous inode: all of them have one number */
            object = tk_kernel_object(0, (uint64_t)fd);
    }
    errno = saved;
    return object;
}

void tk_file_read(int fd)
{
    tk_kernel_acquire(tk_descriptor_object(fd));
    tk_signals_read(fd);
}

/* -- reading, writing ------------------------------------------------------------------------- */

/* Of so many bytes as `result` says. At the end of a pipe, 0, a reader comes after who closed it. */
#define WRAP_INPUT(type, name, parameters, arguments, stores) \
    WRAP_INPUT_INTO(type, name, 0, parameters, arguments, (void)room; stores)

/* And so many bytes as there is `space` for from whom they come. */
#define WRAP_INPUT_INTO(type, name, space, parameters, arguments, stores) \
    TK_EXPORT type name parameters \
    { \
        TK_USE_FILE(fd); \
        socklen_t room = space; \
        type result = TK_REAL(name) arguments; \
        if (result >= 0) { \
            int saved = errno; \
            if (TK_ORDERS()) \
                tk_file_read(fd); \
            if (TK_IS_RECORDED()) { \
                stores; \
            } \
            errno = saved; \
        } \
        return result; \
    }

#define WRAP_OUTPUT(type, name, parameters, arguments, loads) \
    TK_EXPORT type name parameters \
    { \
        TK_USE_FILE(fd); \
        if (TK_ORDERS()) \
            tk_kernel_release(tk_descriptor_object(fd)); \
        type result = TK_REAL(name) arguments; \
        if (result > 0 && TK_IS_RECORDED()) { \
            int saved = errno; \
            loads; \
            errno = saved; \
        } \
        return result; \
    }

/* By MSG_TRUNC a datagram's length is the result, of which only what fits is there. */
static size_t least(size_t one, size_t other)
{
    return one < other ? one : other;
}

#define FILLED tk_library_store(buffer, least((size_t)result, size))
#define FROM \
    if (from && bytes) \
    tk_put(from, room, bytes)
#define EMPTIED tk_library_load(buffer, (size_t)result)

WRAP_INPUT(ssize_t, read, (int fd, void *buffer, size_t size), (fd, buffer, size), FILLED)
WRAP_INPUT(ssize_t, pread, (int fd, void *buffer, size_t size, off_t at), (fd, buffer, size, at), FILLED)
WRAP_INPUT(ssize_t, pread64, (int fd, void *buffer, size_t size, off64_t at), (fd, buffer, size, at), FILLED)
WRAP_INPUT(ssize_t, readv, (int fd, const struct iovec *parts, int count), (fd, parts, count),
           each(tk_library_store, parts, (size_t)count, (size_t)result))
WRAP_OUTPUT(ssize_t, write, (int fd, const void *buffer, size_t size), (fd, buffer, size), EMPTIED)
WRAP_OUTPUT(ssize_t, pwrite, (int fd, const void *buffer, size_t size, off_t at), (fd, buffer, size, at), EMPTIED)
WRAP_OUTPUT(ssize_t, pwrite64, (int fd, const void *buffer, size_t size, off64_t at), (fd, buffer, size, at), EMPTIED)
WRAP_OUTPUT(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count),
            each(tk_library_load, parts, (size_t)count, (size_t)result))

/* What a message says beside its bytes. */
static void received(const struct msghdr *message, socklen_t room)
{
    if (message->msg_name)
        tk_put(message->msg_name, room, &message->msg_namelen);
    tk_library_store(message->msg_control, message->msg_control ? message->msg_controllen : 0);
    tk_library_store(&message->msg_controllen, sizeof message->msg_controllen);
    tk_library_store(&message->msg_flags, sizeof message->msg_flags);
}

/* -- sockets ---------------------------------------------------------------------------------- */

WRAP_INPUT(ssize_t, recv, (int fd, void *buffer, size_t size, int flags), (fd, buffer, size, flags), FILLED)
WRAP_INPUT_INTO(ssize_t, recvfrom, (from && bytes ? *bytes : 0),
                (int fd, void *restrict buffer, size_t size, int flags, struct sockaddr *restrict from,
                 socklen_t *restrict bytes),
                (fd, buffer, size, flags, from, bytes), FILLED;
                FROM)
WRAP_INPUT_INTO(ssize_t, recvmsg, message->msg_namelen, (int fd, struct msghdr *message, int flags),
                (fd, message, flags), received(message, room);
                each(tk_library_store, message->msg_iov, message->msg_iovlen, (size_t)result))
WRAP_OUTPUT(ssize_t, send, (int fd, const void *buffer, size_t size, int flags), (fd, buffer, size, flags), EMPTIED)
WRAP_OUTPUT(ssize_t, sendto,
            (int fd, const void *buffer, size_t size, int flags, const struct sockaddr *to, socklen_t bytes),
            (fd, buffer, size, flags, to, bytes), EMPTIED)
WRAP_OUTPUT(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags),
            each(tk_library_load, message->msg_iov, message->msg_iovlen, (size_t)result))

/* Before it is connected, a socket has no ends: who connects comes before who accepts, whichever they are. */
TK_EXPORT int connect(int fd, const struct sockaddr *to, socklen_t bytes)
{
    TK_USE_FILE(fd);
    if (TK_ORDERS())
        tk_kernel_release(ANY_SOCKET);
    return TK_REAL(connect)(fd, to, bytes);
}

#define WRAP_ACCEPT(name, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        TK_USE_FILE(fd); \
        socklen_t room = from && bytes ? *bytes : 0; \
        int result = TK_REAL(name)(__VA_ARGS__); \
        if (result >= 0 && TK_ORDERS()) \
            tk_kernel_acquire(ANY_SOCKET); \
        if (result >= 0) \
            TK_BEGIN_FILE(result); \
        if (result >= 0 && TK_IS_RECORDED()) \
            FROM; \
        return result; \
    }

WRAP_ACCEPT(accept, (int fd, struct sockaddr *restrict from, socklen_t *restrict bytes), fd, from, bytes)
WRAP_ACCEPT(accept4, (int fd, struct sockaddr *restrict from, socklen_t *restrict bytes, int flags), fd, from, bytes,
            flags)

/* -- ends, events ----------------------------------------------------------------------------- */

TK_EXPORT int close(int fd)
{
    if (TK_ORDERS()) {
        tk_kernel_release(tk_descriptor_object(fd));
        tk_file_closed(fd);
    }
    TK_END_FILE(fd);
    return TK_REAL(close)(fd);
}

TK_EXPORT int shutdown(int fd, int how)
{
    TK_USE_FILE(fd);
    if (TK_ORDERS())
        tk_kernel_release(tk_descriptor_object(fd));
    return TK_REAL(shutdown)(fd, how);
}

TK_EXPORT int eventfd_write(int fd, eventfd_t value)
{
    TK_USE_FILE(fd);
    if (TK_ORDERS())
        tk_kernel_release(tk_descriptor_object(fd));
    return TK_REAL(eventfd_write)(fd, value);
}

TK_EXPORT int eventfd_read(int fd, eventfd_t *value)
{
    TK_USE_FILE(fd);
    int result = TK_REAL(eventfd_read)(fd, value);
    if (result == 0 && TK_ORDERS())
        tk_kernel_acquire(tk_descriptor_object(fd));
    if (result == 0 && TK_IS_RECORDED())
        tk_library_store(value, sizeof *value);
    return result;
}

/* What a descriptor is entered with (epoll_data) is for who waits. */
TK_EXPORT int epoll_ctl(int fd, int operation, int watched, struct epoll_event *event)
{
    TK_USE_FILE(fd);
    TK_USE_FILE(watched);
    if (TK_ORDERS())
        tk_kernel_release(tk_descriptor_object(fd));
    return TK_REAL(epoll_ctl)(fd, operation, watched, event);
}

#define WRAP_WAIT(name, parameters, arguments) \
    WRAP_INPUT(int, name, parameters, arguments, tk_library_store(events, (size_t)result * sizeof *events))

WRAP_WAIT(epoll_wait, (int fd, struct epoll_event *events, int most, int time), (fd, events, most, time))
WRAP_WAIT(epoll_pwait, (int fd, struct epoll_event *events, int most, int time, const sigset_t *mask),
          (fd, events, most, time, mask))

/* -- what _FORTIFY_SOURCE makes of them ------------------------------------------------------- */

ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *buffer, size_t size, off64_t at, size_t room);
ssize_t __recv_chk(int fd, void *buffer, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *restrict buffer, size_t size, size_t room, int flags,
                       struct sockaddr *restrict from, socklen_t *restrict bytes);

WRAP_INPUT(ssize_t, __read_chk, (int fd, void *buffer, size_t size, size_t whole), (fd, buffer, size, whole), FILLED)
WRAP_INPUT(ssize_t, __pread_chk, (int fd, void *buffer, size_t size, off_t at, size_t whole),
           (fd, buffer, size, at, whole), FILLED)
WRAP_INPUT(ssize_t, __pread64_chk, (int fd, void *buffer, size_t size, off64_t at, size_t whole),
           (fd, buffer, size, at, whole), FILLED)
WRAP_INPUT(ssize_t, __recv_chk, (int fd, void *buffer, size_t size, size_t whole, int flags),
           (fd, buffer, size, whole, flags), FILLED)
WRAP_INPUT_INTO(ssize_t, __recvfrom_chk, (from && bytes ? *bytes : 0),
                (int fd, void *restrict buffer, size_t size, size_t whole, int flags, struct sockaddr *restrict from,
                 socklen_t *restrict bytes),
                (fd, buffer, size, whole, flags, from, bytes), FILLED;
                FROM)
