/* fork, exec and the end of the process. */
#include "preload.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

static int exit_status;

static void note_status(int status, void *unused)
{
    (void)unused;
    exit_status = status;
}

/* Registered when the pool is claimed, before the program's own handlers: nothing instrumented runs before it. */
void tk_watch_process(void)
{
    pthread_atfork(NULL, NULL, tk_leave_pool);
    on_exit(note_status, NULL);
}

__attribute__((destructor)) static void end_program(void)
{
    if (tk_pool && tk_recording())
        TK_RECORD2(program_end, tk_ticket(), (uint64_t)(int64_t)exit_status);
}

TK_EXPORT pid_t fork(void)
{
    pid_t child = TK_REAL(fork)();
    if (child > 0 && tk_recording())
        TK_RECORD2(fork, tk_ticket(), (uint64_t)child);
    return child;
}

/* A child of vfork writes to its parent's memory: its exec is not the parent's. */
static void before_exec(void)
{
    if (tk_recording() && tk_pool->owner == (uint32_t)getpid())
        TK_RECORD1(exec, tk_ticket());
}

#define WRAP_EXEC(name, parameters, ...) \
    TK_EXPORT int name parameters \
    { \
        before_exec(); \
        return TK_REAL(name)(__VA_ARGS__); \
    }

typedef char *const *strings;
int execveat(int fd, const char *path, strings argv, strings envp, int flags);

WRAP_EXEC(execve, (const char *path, strings argv, strings envp), path, argv, envp)
WRAP_EXEC(execv, (const char *path, strings argv), path, argv)
WRAP_EXEC(execvp, (const char *file, strings argv), file, argv)
WRAP_EXEC(execvpe, (const char *file, strings argv, strings envp), file, argv, envp)
WRAP_EXEC(fexecve, (int fd, strings argv, strings envp), fd, argv, envp)
WRAP_EXEC(execveat, (int fd, const char *path, strings argv, strings envp, int flags), fd, path, argv, envp, flags)

/* The forms with the arguments in the call: counted, then copied to the stack, as the C library does. */
#define WRAP_EXECL(name, ...) \
    TK_EXPORT int name(const char *path, const char *first, ...) \
    { \
        va_list list; \
        size_t count = 0; \
        va_start(list, first); \
        for (const char *argument = first; argument; argument = va_arg(list, const char *)) \
            count++; \
        va_end(list); \
        char *argv[count + 1]; \
        argv[0] = (char *)first; \
        va_start(list, first); \
        for (size_t index = 1; index <= count; index++) \
            argv[index] = va_arg(list, char *); \
        before_exec(); \
        int result = __VA_ARGS__; \
        va_end(list); \
        return result; \
    }

WRAP_EXECL(execl, TK_REAL(execv)(path, argv))
WRAP_EXECL(execlp, TK_REAL(execvp)(path, argv))
WRAP_EXECL(execle, TK_REAL(execve)(path, argv, va_arg(list, char **)))
