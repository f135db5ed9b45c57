/* The end of the process, and the programs that it executes. */
#include "preload_record.h"

#include <errno.h>
#include <alloca.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { STRICT = 1 }; /* SECCOMP_MODE_STRICT, which the headers for musl do not bring */

static int exit_status;

static void note_status(int status, void *unused)
{
    (void)unused;
    exit_status = status;
    if (tk_pool)
        tk_layout.exchange->status = 256 | (status & 255);
}

/* Registered when the pool is claimed, before the program's own handlers: nothing instrumented runs before it. */
void tk_watch_process(void)
{
    on_exit(note_status, NULL);
}

#ifdef TK_STATIC
#define LAST 0 /* after the program's own; the runtime stands before it at the link, and is left after it */
#else
#define LAST 65535
#endif

__attribute__((destructor(LAST))) static void end_program(void)
{
    tk_leave_allocator((const void *)UINTPTR_MAX); /* one that gave up */
    if (tk_pool && tk_noting())
        TK_RECORD2(program_end, tk_ticket(), (uint64_t)(int64_t)exit_status);
}

/* Without handlers, so the collector learns the status here. A child of vfork ends by this too: not its parent. */
static void note_end(int status)
{
    struct tk_pool *pool = tk_pool;
    if (pool && (tk_is_without_calls() || pool->owner == (uint32_t)getpid()))
        tk_layout.exchange->status = 256 | (status & 255);
}

TK_EXPORT void _exit(int status)
{
    note_end(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

TK_EXPORT void _Exit(int status)
{
    _exit(status);
}

/* A program that puts itself into a sandbox. Whatever it allows: the recorder needs no system calls any more. */
TK_EXPORT int prctl(int option, ...)
{
    unsigned long argument[4];
    va_list list;
    va_start(list, option);
    for (int index = 0; index < 4; index++) /* as the C library does, which does not know how many there are */
        argument[index] = va_arg(list, unsigned long);
    va_end(list);
    static int is_in_sandbox;
    if (option == PR_SET_SECCOMP)
        tk_do_without_calls(1, argument[0] == STRICT);
    int result = TK_REAL(prctl)(option, argument[0], argument[1], argument[2], argument[3]);
    if (option == PR_SET_SECCOMP) {
        is_in_sandbox |= result == 0;
        tk_do_without_calls(is_in_sandbox, result == 0 && argument[0] == STRICT);
    }
    return result;
}

/* A child of vfork writes to its parent's memory: its exec is not the parent's. */
static void before_exec(void)
{
    if (tk_noting() && tk_pool->owner == (uint32_t)getpid())
        TK_RECORD1(exec, tk_ticket());
}

/* With --follow-fork programs get the session in their environment. On the stack: a child of vfork may execute one. */
#define HANDED_ON(envp) (tk_hands_on() ? tk_hand_on(envp, alloca(tk_hand_on_bytes(envp))) : (char **)(envp))

#define WRAP_EXEC(name, parameters, real, envp, ...) \
    TK_EXPORT int name parameters \
    { \
        char **handed_on = HANDED_ON(envp); \
        before_exec(); \
        return TK_REAL(real)(__VA_ARGS__); \
    }

typedef char *const *strings;
int execveat(int fd, const char *path, strings argv, strings envp, int flags);

WRAP_EXEC(execve, (const char *path, strings argv, strings envp), execve, envp, path, argv, handed_on)
WRAP_EXEC(execv, (const char *path, strings argv), execve, environ, path, argv, handed_on)
WRAP_EXEC(execvp, (const char *file, strings argv), execvpe, environ, file, argv, handed_on)
WRAP_EXEC(execvpe, (const char *file, strings argv, strings envp), execvpe, envp, file, argv, handed_on)
WRAP_EXEC(fexecve, (int fd, strings argv, strings envp), fexecve, envp, fd, argv, handed_on)
WRAP_EXEC(execveat, (int fd, const char *path, strings argv, strings envp, int flags), execveat, envp, fd, path, argv,
          handed_on, flags)

/* The forms with the arguments in the call: counted, then copied to the stack, as the C library does. */
#define WRAP_EXECL(name, real, envp) \
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
        char **given = envp; \
        va_end(list); \
        char **handed_on = HANDED_ON(given); \
        before_exec(); \
        return TK_REAL(real)(path, argv, handed_on); \
    }

WRAP_EXECL(execl, execve, environ)
WRAP_EXECL(execlp, execvpe, environ)
WRAP_EXECL(execle, execve, va_arg(list, char **))

#define WRAP_SPAWN(name) \
    TK_EXPORT int name(pid_t *restrict child, const char *restrict path, const posix_spawn_file_actions_t *actions, \
                       const posix_spawnattr_t *restrict attributes, strings argv, strings envp) \
    { \
        pid_t started; \
        int result = TK_REAL(name)(&started, path, actions, attributes, argv, HANDED_ON(envp)); \
        if (result == 0 && child) \
            *child = started; \
        if (result == 0 && TK_BY_PROGRAM() && tk_noting()) \
            TK_RECORD2(fork, tk_ticket(), (uint64_t)started); \
        return result; \
    }

WRAP_SPAWN(posix_spawn)
WRAP_SPAWN(posix_spawnp)
