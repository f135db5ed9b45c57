/* What orders threads by way of the kernel beside descriptors that are read and written (interceptors_files.c): signals
 * that one thread sends and another one waits for, message queues, semaphores of System V, locks of files.
 *
 * Each has a number in the place of an address (tk_kernel_object). That more is ordered than has to be is possible
 * where a thing has one number for all who use it: a signal, whichever thread it is sent to. */
#define __NO_INLINE__ /* the C library's headers must not define what is interposed here */
#include "preload_record.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum thing { SIGNAL = 1000, PROCESS, MESSAGES, RAISED, LOWERED, WHOLE_SET, FILE_LOCK };

static uint64_t numbered(enum thing thing, uint64_t number)
{
    return tk_kernel_object((uint64_t)thing, number);
}

/* -- signals ---------------------------------------------------------------------------------- */

static void arrived(int signal)
{
    tk_kernel_acquire(numbered(SIGNAL, (uint64_t)signal));
}

/* Who sends one to a process may end it: whoever waits for that comes after, too. */
static void sent(int signal, pid_t process)
{
    if (signal > 0)
        tk_kernel_release(numbered(SIGNAL, (uint64_t)signal));
    if (signal > 0 && process > 0)
        tk_kernel_release(numbered(PROCESS, (uint64_t)process));
}

#define WRAP_SEND(name, parameters, arguments, process) \
    TK_EXPORT int name parameters \
    { \
        if (TK_ORDERS()) \
            sent(number, process); \
        return TK_REAL(name) arguments; \
    }

WRAP_SEND(kill, (pid_t process, int number), (process, number), process)
WRAP_SEND(killpg, (pid_t group, int number), (group, number), 0)
WRAP_SEND(tgkill, (pid_t process, pid_t thread, int number), (process, thread, number), 0)
WRAP_SEND(raise, (int number), (number), 0)
WRAP_SEND(sigqueue, (pid_t process, int number, const union sigval value), (process, number, value), process)
WRAP_SEND(pthread_kill, (pthread_t thread, int number), (thread, number), 0)
WRAP_SEND(pthread_sigqueue, (pthread_t thread, int number, const union sigval value), (thread, number, value), 0)

TK_EXPORT int sigwait(const sigset_t *restrict signals, int *restrict number)
{
    int result = TK_REAL(sigwait)(signals, number);
    if (result == 0 && TK_ORDERS())
        arrived(*number);
    return result;
}

#define WRAP_SIGNAL_WAIT(name, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        int result = TK_REAL(name)(__VA_ARGS__); \
        if (result > 0 && TK_ORDERS()) \
            arrived(result); \
        return result; \
    }

WRAP_SIGNAL_WAIT(sigwaitinfo, (const sigset_t *restrict signals, siginfo_t *restrict info), signals, info)
WRAP_SIGNAL_WAIT(sigtimedwait,
                 (const sigset_t *restrict signals, siginfo_t *restrict info, const struct timespec *restrict time),
                 signals, info, time)

/* Signals that are read: each of the descriptor's set may be what is read, whoever sent it. */
#define FILES 1024

static uint64_t signals_of[FILES]; /* by descriptor, a bit for each signal from 1 on; 0 of what is no signalfd */

TK_EXPORT int signalfd(int fd, const sigset_t *signals, int flags)
{
    int result = TK_REAL(signalfd)(fd, signals, flags);
    if (result >= 0 && result < FILES && tk_pool) {
        uint64_t set = 0;
        for (int signal = 1; signal <= 64; signal++)
            set |= (uint64_t)(TK_REAL(sigismember)(signals, signal) == 1) << (signal - 1);
        __atomic_store_n(&signals_of[result], set, __ATOMIC_RELAXED);
    }
    return result;
}

void tk_signals_read(int fd)
{
    uint64_t set = fd >= 0 && fd < FILES ? __atomic_load_n(&signals_of[fd], __ATOMIC_RELAXED) : 0;
    for (int signal = 1; set; signal++, set >>= 1)
        if (set & 1)
            arrived(signal);
}

static uint64_t lock_of(int fd);

void tk_file_closed(int fd)
{
    tk_kernel_release(lock_of(fd));
    if (fd >= 0 && fd < FILES)
        __atomic_store_n(&signals_of[fd], 0, __ATOMIC_RELAXED);
}

/* -- processes -------------------------------------------------------------------------------- */

#define WRAP_CHILD_WAIT(name, parameters, ...) \
    TK_EXPORT pid_t name parameters \
    { \
        pid_t result = TK_REAL(name)(__VA_ARGS__); \
        if (result > 0 && TK_ORDERS()) \
            tk_kernel_acquire(numbered(PROCESS, (uint64_t)result)); \
        if (result > 0 && TK_IS_RECORDED()) { \
            if (status) \
                tk_library_store(status, sizeof *status); \
            if (used) \
                tk_library_store(used, sizeof *used); \
        } \
        return result; \
    }

static struct rusage *const used; /* of those that do not say what the child used */

WRAP_CHILD_WAIT(wait, (int *status), status)
WRAP_CHILD_WAIT(waitpid, (pid_t process, int *status, int options), process, status, options)
WRAP_CHILD_WAIT(wait3, (int *status, int options, struct rusage *used), status, options, used)
WRAP_CHILD_WAIT(wait4, (pid_t process, int *status, int options, struct rusage *used), process, status, options, used)

TK_EXPORT int waitid(idtype_t which, id_t process, siginfo_t *child, int options)
{
    int result = TK_REAL(waitid)(which, process, child, options);
    if (result == 0 && child && child->si_pid > 0 && TK_ORDERS())
        tk_kernel_acquire(numbered(PROCESS, (uint64_t)child->si_pid));
    if (result == 0 && child && TK_IS_RECORDED())
        tk_library_store(child, sizeof *child);
    return result;
}

/* -- timers ----------------------------------------------------------------------------------- */

TK_EXPORT int timerfd_settime(int fd, int flags, const struct itimerspec *time, struct itimerspec *old)
{
    if (TK_ORDERS())
        tk_kernel_release(tk_descriptor_object(fd));
    return TK_REAL(timerfd_settime)(fd, flags, time, old);
}

/* -- waiting for several descriptors: those that may be read have been written to -------------- */

static void polled(const struct pollfd *files, nfds_t count, int is_done)
{
    for (nfds_t number = 0; number < count; number++) {
        tk_library_load(&files[number], offsetof(struct pollfd, revents));
        if (is_done)
            tk_library_store(&files[number].revents, sizeof files->revents);
    }
}

static void readable(const struct pollfd *files, nfds_t count)
{
    int saved = errno;
    for (nfds_t number = 0; number < count; number++)
        if (files[number].fd >= 0 && files[number].revents & (POLLIN | POLLPRI | POLLHUP | POLLRDHUP))
            tk_kernel_acquire(tk_descriptor_object(files[number].fd));
    errno = saved;
}

#define WRAP_POLL(name, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        int result = TK_REAL(name)(__VA_ARGS__); \
        if (result > 0 && TK_ORDERS()) \
            readable(files, count); \
        if (TK_IS_RECORDED()) \
            polled(files, count, result >= 0); \
        return result; \
    }

int __poll_chk(struct pollfd *files, nfds_t count, int time, size_t room);
int __ppoll_chk(struct pollfd *files, nfds_t count, const struct timespec *time, const sigset_t *mask, size_t room);

WRAP_POLL(poll, (struct pollfd * files, nfds_t count, int time), files, count, time)
WRAP_POLL(ppoll, (struct pollfd * files, nfds_t count, const struct timespec *time, const sigset_t *mask), files, count,
          time, mask)
WRAP_POLL(__poll_chk, (struct pollfd * files, nfds_t count, int time, size_t room), files, count, time, room)
WRAP_POLL(__ppoll_chk,
          (struct pollfd * files, nfds_t count, const struct timespec *time, const sigset_t *mask, size_t room), files,
          count, time, mask, room)

/* The kernel reads and writes whole words of the sets. */
static void set_used(int end, const fd_set *files)
{
    size_t word = sizeof files->fds_bits[0], bytes = ((size_t)end + 8 * word - 1) / (8 * word) * word;
    if (files && end > 0) {
        tk_library_load(files, bytes);
        tk_library_store(files, bytes);
    }
}

static void selected(int end, fd_set *files)
{
    int saved = errno;
    for (int fd = 0; files && fd < end; fd++)
        if (files->fds_bits[fd / (8 * (int)sizeof files->fds_bits[0])] >> fd % (8 * (int)sizeof files->fds_bits[0]) & 1)
            tk_kernel_acquire(tk_descriptor_object(fd));
    errno = saved;
}

/* select says how much time is left. */
static void time_left(struct timeval *time)
{
    if (time) {
        tk_library_load(time, sizeof *time);
        tk_library_store(time, sizeof *time);
    }
}

static void time_read(const struct timespec *time)
{
    if (time)
        tk_library_load(time, sizeof *time);
}

#define WRAP_SELECT(name, left, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        int result = TK_REAL(name)(__VA_ARGS__); \
        if (result > 0 && TK_ORDERS()) \
            selected(end, in); \
        if (result >= 0 && TK_IS_RECORDED()) { \
            set_used(end, in); \
            set_used(end, out); \
            set_used(end, other); \
            left(time); \
        } \
        return result; \
    }

WRAP_SELECT(select, time_left,
            (int end, fd_set *restrict in, fd_set *restrict out, fd_set *restrict other, struct timeval *restrict time),
            end, in, out, other, time)
WRAP_SELECT(pselect, time_read,
            (int end, fd_set *restrict in, fd_set *restrict out, fd_set *restrict other,
             const struct timespec *restrict time, const sigset_t *restrict mask),
            end, in, out, other, time, mask)

/* -- what moves bytes between descriptors ------------------------------------------------------ */

/* Who reads what it put into a pipe comes after this thread, and so after who wrote what it took. */
#define WRAP_MOVE(name, parameters, from, to, ...) \
    TK_EXPORT ssize_t name parameters \
    { \
        uint64_t object = TK_ORDERS() ? tk_descriptor_object(to) : 0; \
        tk_kernel_release(object); \
        ssize_t result = TK_REAL(name)(__VA_ARGS__); \
        if (result >= 0 && TK_ORDERS()) { \
            int saved = errno; \
            tk_kernel_acquire(tk_descriptor_object(from)); \
            tk_kernel_release(object); \
            errno = saved; \
        } \
        return result; \
    }

WRAP_MOVE(splice, (int from, off64_t *at, int to, off64_t *behind, size_t size, unsigned flags), from, to, from, at, to,
          behind, size, flags)
WRAP_MOVE(tee, (int from, int to, size_t size, unsigned flags), from, to, from, to, size, flags)

TK_EXPORT ssize_t vmsplice(int to, const struct iovec *parts, size_t count, unsigned flags)
{
    if (TK_ORDERS())
        tk_kernel_release(tk_descriptor_object(to));
    return TK_REAL(vmsplice)(to, parts, count, flags);
}

/* -- streams: what stands in a buffer is written by fclose at the latest ---------------------- */

void tk_stream_read(FILE *stream)
{
    if (tk_has_threads && tk_noting())
        tk_file_read(fileno_unlocked(stream));
}

/* -- message queues --------------------------------------------------------------------------- */

/* One of POSIX is a descriptor. */
static uint64_t queue_of(mqd_t queue)
{
    struct stat status;
    int saved = errno;
    uint64_t object = TK_REAL(fstat)((int)queue, &status) == 0 ? tk_kernel_object(status.st_dev, status.st_ino) : 0;
    errno = saved;
    return object;
}

#define WRAP_MQ_SEND(name, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        if (TK_ORDERS()) \
            tk_kernel_release(queue_of(queue)); \
        int result = TK_REAL(name)(__VA_ARGS__); \
        if (result == 0 && TK_IS_RECORDED()) \
            tk_library_load(message, size); \
        return result; \
    }

#define WRAP_MQ_RECEIVE(name, parameters, ...) \
    TK_EXPORT ssize_t name parameters \
    { \
        ssize_t result = TK_REAL(name)(__VA_ARGS__); \
        if (result >= 0 && TK_ORDERS()) \
            tk_kernel_acquire(queue_of(queue)); \
        if (result > 0 && TK_IS_RECORDED()) \
            tk_library_store(message, (size_t)result); \
        return result; \
    }

WRAP_MQ_SEND(mq_send, (mqd_t queue, const char *message, size_t size, unsigned priority), queue, message, size,
             priority)
WRAP_MQ_SEND(mq_timedsend,
             (mqd_t queue, const char *message, size_t size, unsigned priority, const struct timespec *time), queue,
             message, size, priority, time)
WRAP_MQ_RECEIVE(mq_receive, (mqd_t queue, char *message, size_t room, unsigned *priority), queue, message, room,
                priority)
WRAP_MQ_RECEIVE(mq_timedreceive,
                (mqd_t queue, char *restrict message, size_t room, unsigned *restrict priority,
                 const struct timespec *restrict time),
                queue, message, room, priority, time)

/* Those of System V: the text stands behind a long. */
TK_EXPORT int msgsnd(int queue, const void *message, size_t size, int flags)
{
    if (TK_ORDERS())
        tk_kernel_release(numbered(MESSAGES, (uint64_t)queue));
    int result = TK_REAL(msgsnd)(queue, message, size, flags);
    if (result == 0 && TK_IS_RECORDED())
        tk_library_load(message, sizeof(long) + size);
    return result;
}

TK_EXPORT ssize_t msgrcv(int queue, void *message, size_t room, long type, int flags)
{
    ssize_t result = TK_REAL(msgrcv)(queue, message, room, type, flags);
    if (result >= 0 && TK_ORDERS())
        tk_kernel_acquire(numbered(MESSAGES, (uint64_t)queue));
    if (result >= 0 && TK_IS_RECORDED())
        tk_library_store(message, sizeof(long) + (size_t)result);
    return result;
}

/* -- semaphores of System V ------------------------------------------------------------------- */

/* Who lowers one comes after who raised it; who waits for zero, after who lowered it. */
static void before_operations(int set, const struct sembuf *operations, size_t count)
{
    for (size_t number = 0; number < count; number++)
        if (operations[number].sem_op != 0)
            tk_kernel_release(numbered(operations[number].sem_op > 0 ? RAISED : LOWERED,
                                       (uint64_t)set << 16 | operations[number].sem_num));
}

static void behind_operations(int set, const struct sembuf *operations, size_t count)
{
    for (size_t number = 0; number < count; number++)
        if (operations[number].sem_op <= 0) {
            tk_kernel_acquire(numbered(operations[number].sem_op < 0 ? RAISED : LOWERED,
                                       (uint64_t)set << 16 | operations[number].sem_num));
            tk_kernel_acquire(numbered(WHOLE_SET, (uint64_t)set));
        }
}

#define WRAP_OPERATIONS(name, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        if (TK_ORDERS()) \
            before_operations(set, operations, count); \
        int result = TK_REAL(name)(__VA_ARGS__); \
        if (result == 0 && TK_ORDERS()) \
            behind_operations(set, operations, count); \
        return result; \
    }

WRAP_OPERATIONS(semop, (int set, struct sembuf *operations, size_t count), set, operations, count)
WRAP_OPERATIONS(semtimedop, (int set, struct sembuf *operations, size_t count, const struct timespec *time), set,
                operations, count, time)

/* The fourth argument is a union of the size of a pointer, if there is one. */
TK_EXPORT int semctl(int set, int number, int command, ...)
{
    va_list more;
    va_start(more, command);
    void *argument = va_arg(more, void *);
    va_end(more);
    if ((command == SETVAL || command == SETALL) && TK_ORDERS())
        tk_kernel_release(numbered(WHOLE_SET, (uint64_t)set));
    return TK_REAL(semctl)(set, number, command, argument);
}

/* -- locks of files --------------------------------------------------------------------------- */

static int locks_files; /* the program has locked one */

/* Those of one process by fcntl's F_SETLK or lockf keep out other processes, not other threads. */
static uint64_t lock_of(int fd)
{
    struct stat status;
    int saved = errno;
    uint64_t object = 0;
    if (__atomic_load_n(&locks_files, __ATOMIC_RELAXED) && TK_REAL(fstat)(fd, &status) == 0)
        object = numbered(FILE_LOCK, tk_kernel_object(status.st_dev, status.st_ino));
    errno = saved;
    return object;
}

static void file_locked(int fd)
{
    __atomic_store_n(&locks_files, 1, __ATOMIC_RELAXED);
    tk_kernel_acquire(lock_of(fd));
}

TK_EXPORT int flock(int fd, int operation)
{
    int releases = (operation & ~LOCK_NB) == LOCK_UN;
    if (releases && TK_ORDERS())
        tk_kernel_release(lock_of(fd));
    int result = TK_REAL(flock)(fd, operation);
    if (result == 0 && !releases && TK_ORDERS())
        file_locked(fd);
    return result;
}

/* Of an open file description. */
static int is_own_lock(int command)
{
    return command == F_OFD_SETLK || command == F_OFD_SETLKW;
}

static int gives_up(int command, const void *argument)
{
    return is_own_lock(command) && ((const struct flock *)argument)->l_type == F_UNLCK;
}

/* Whose lock is in the way, which is put in the place of the question. */
static int asks_for_lock(int command)
{
    return command == F_GETLK || command == F_OFD_GETLK;
}

/* The third argument is a number or a pointer, if there is one. */
#define WRAP_CONTROL(name) \
    TK_EXPORT int name(int fd, int command, ...) \
    { \
        va_list more; \
        va_start(more, command); \
        void *argument = va_arg(more, void *); \
        va_end(more); \
        if (gives_up(command, argument) && TK_ORDERS()) \
            tk_kernel_release(lock_of(fd)); \
        int result = TK_REAL(name)(fd, command, argument); \
        if (result == 0 && is_own_lock(command) && !gives_up(command, argument) && TK_ORDERS()) \
            file_locked(fd); \
        if (result == 0 && asks_for_lock(command) && TK_IS_RECORDED()) { \
            tk_library_load(argument, sizeof(struct flock)); \
            tk_library_store(argument, sizeof(struct flock)); \
        } \
        return result; \
    }

int fcntl64(int fd, int command, ...);
WRAP_CONTROL(fcntl)
WRAP_CONTROL(fcntl64)
