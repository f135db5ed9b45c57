/* When synchronisation objects and file descriptors begin and end: whoever uses one has to come after and before that.
 *
 * close is with what it orders, in interceptors_files.c, and pthread_barrier_init, which says more, in
 * interceptors_order.c. */
#define __NO_INLINE__ /* the C library's headers must not define what is interposed here */
#include "preload_record.h"

#include <fcntl.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <threads.h>
#include <unistd.h>

/* -- synchronisation objects ------------------------------------------------------------------ */

#define WRAP_INIT(name, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        int result = TK_REAL(name)(__VA_ARGS__); \
        if (result == 0) \
            TK_BEGIN(object); \
        return result; \
    }
#define WRAP_DESTROY(type, name, object_type) \
    TK_EXPORT type name(object_type *object) \
    { \
        TK_END(object); \
        return TK_REAL(name)(object); \
    }
#define WRAP_USE(name, object_type) \
    TK_EXPORT int name(object_type *object) \
    { \
        TK_USE(object); \
        return TK_REAL(name)(object); \
    }

WRAP_INIT(pthread_mutex_init, (pthread_mutex_t * object, const pthread_mutexattr_t *attributes), object, attributes)
WRAP_DESTROY(int, pthread_mutex_destroy, pthread_mutex_t)
WRAP_INIT(pthread_rwlock_init, (pthread_rwlock_t *restrict object, const pthread_rwlockattr_t *restrict attributes),
          object, attributes)
WRAP_DESTROY(int, pthread_rwlock_destroy, pthread_rwlock_t)
WRAP_INIT(pthread_spin_init, (pthread_spinlock_t * object, int shared), object, shared)
WRAP_DESTROY(int, pthread_spin_destroy, pthread_spinlock_t)
WRAP_DESTROY(int, pthread_barrier_destroy, pthread_barrier_t)
WRAP_INIT(pthread_cond_init, (pthread_cond_t *restrict object, const pthread_condattr_t *restrict attributes), object,
          attributes)
WRAP_DESTROY(int, pthread_cond_destroy, pthread_cond_t)
WRAP_USE(pthread_cond_signal, pthread_cond_t)
WRAP_USE(pthread_cond_broadcast, pthread_cond_t)
WRAP_INIT(sem_init, (sem_t * object, int shared, unsigned value), object, shared, value)
WRAP_DESTROY(int, sem_destroy, sem_t)

/* C11's: 0 is thrd_success. */
WRAP_INIT(mtx_init, (mtx_t * object, int type), object, type)
WRAP_DESTROY(void, mtx_destroy, mtx_t)
WRAP_INIT(cnd_init, (cnd_t * object), object)
WRAP_DESTROY(void, cnd_destroy, cnd_t)
WRAP_USE(cnd_signal, cnd_t)
WRAP_USE(cnd_broadcast, cnd_t)

/* -- file descriptors ------------------------------------------------------------------------- */

/* The result is a new one. */
#define WRAP_OPEN(name, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        int result = TK_REAL(name)(__VA_ARGS__); \
        if (result >= 0) \
            TK_BEGIN_FILE(result); \
        return result; \
    }

/* A file that the call may create has a mode. */
#define WRAP_OPEN_WITH_MODE(name, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        mode_t mode = 0; \
        if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) { \
            va_list more; \
            va_start(more, flags); \
            mode = va_arg(more, mode_t); \
            va_end(more); \
        } \
        int result = TK_REAL(name)(__VA_ARGS__, mode); \
        if (result >= 0) \
            TK_BEGIN_FILE(result); \
        return result; \
    }

/* The first two of an array are. */
#define WRAP_PAIR(name, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        int result = TK_REAL(name)(__VA_ARGS__); \
        if (result == 0) { \
            TK_BEGIN_FILE(pair[0]); \
            TK_BEGIN_FILE(pair[1]); \
            if (TK_IS_RECORDED()) \
                tk_library_store(pair, 2 * sizeof *pair); \
        } \
        return result; \
    }

/* Who duplicates one over another may have closed that before, or wants nobody to find it closed: so it counts as used,
 * by both, and not as closed. */
#define WRAP_REPLACE(name, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        TK_USE_FILE(fd); \
        TK_USE_FILE(over); \
        return TK_REAL(name)(__VA_ARGS__); \
    }

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);

WRAP_OPEN_WITH_MODE(open, (const char *path, int flags, ...), path, flags)
WRAP_OPEN_WITH_MODE(open64, (const char *path, int flags, ...), path, flags)
WRAP_OPEN_WITH_MODE(openat, (int folder, const char *path, int flags, ...), folder, path, flags)
WRAP_OPEN_WITH_MODE(openat64, (int folder, const char *path, int flags, ...), folder, path, flags)
WRAP_OPEN(__open_2, (const char *path, int flags), path, flags)
WRAP_OPEN(__open64_2, (const char *path, int flags), path, flags)
WRAP_OPEN(__openat_2, (int folder, const char *path, int flags), folder, path, flags)
WRAP_OPEN(__openat64_2, (int folder, const char *path, int flags), folder, path, flags)
WRAP_OPEN(creat, (const char *path, mode_t mode), path, mode)
WRAP_OPEN(creat64, (const char *path, mode_t mode), path, mode)
WRAP_OPEN(socket, (int family, int type, int protocol), family, type, protocol)
WRAP_OPEN(epoll_create, (int size), size)
WRAP_OPEN(epoll_create1, (int flags), flags)
WRAP_OPEN(eventfd, (unsigned count, int flags), count, flags)
WRAP_PAIR(pipe, (int pair[2]), pair)
WRAP_PAIR(pipe2, (int pair[2], int flags), pair, flags)
WRAP_PAIR(socketpair, (int family, int type, int protocol, int pair[2]), family, type, protocol, pair)
WRAP_REPLACE(dup2, (int fd, int over), fd, over)
WRAP_REPLACE(dup3, (int fd, int over, int flags), fd, over, flags)

TK_EXPORT int dup(int fd)
{
    TK_USE_FILE(fd);
    int result = TK_REAL(dup)(fd);
    if (result >= 0)
        TK_BEGIN_FILE(result);
    return result;
}

/* A stream's descriptor ends with it. */
TK_EXPORT int fclose(FILE *stream)
{
    if (tk_has_threads && stream) {
        int fd = fileno_unlocked(stream);
        if (fd >= 0 && TK_ORDERS()) {
            tk_kernel_release(tk_descriptor_object(fd));
            tk_file_closed(fd);
        }
        if (fd >= 0)
            TK_END_FILE(fd);
    }
    return TK_REAL(fclose)(stream);
}
