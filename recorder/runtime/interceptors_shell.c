/* system and popen: the C library starts the shell by itself, with the environment as it stands, so with --follow-fork
 * they are made here of posix_spawn, which hands the session on. */
#include "preload.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

extern char **environ;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int
    callers; /* of system, in all threads: the first one ignores SIGINT and SIGQUIT, the last one restores them */
static struct sigaction interrupt, quit;

static void ignore_keyboard(void)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    TK_REAL(pthread_mutex_lock)(&mutex);
    if (callers++ == 0) {
        TK_REAL(sigaction)(SIGINT, &ignore, &interrupt);
        TK_REAL(sigaction)(SIGQUIT, &ignore, &quit);
    }
    TK_REAL(pthread_mutex_unlock)(&mutex);
}

static void heed_keyboard(void)
{
    TK_REAL(pthread_mutex_lock)(&mutex);
    if (--callers == 0) {
        TK_REAL(sigaction)(SIGINT, &interrupt, NULL);
        TK_REAL(sigaction)(SIGQUIT, &quit, NULL);
    }
    TK_REAL(pthread_mutex_unlock)(&mutex);
}

/* The shell runs with the signals as they were before the call. */
static int spawn_shell(pid_t *child, const char *command, const sigset_t *before)
{
    char *const arguments[] = {"sh", "-c", (char *)command, NULL};
    posix_spawnattr_t attributes;
    sigset_t defaults;
    TK_REAL(sigemptyset)(&defaults);
    if (interrupt.sa_handler != SIG_IGN)
        TK_REAL(sigaddset)(&defaults, SIGINT);
    if (quit.sa_handler != SIG_IGN)
        TK_REAL(sigaddset)(&defaults, SIGQUIT);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, before);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    int result = posix_spawn(child, "/bin/sh", NULL, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    return result;
}

TK_EXPORT int system(const char *command)
{
    if (!tk_following() || !command)
        return TK_REAL(system)(command);
    sigset_t child_signal, before;
    pid_t child;
    int status = -1;
    TK_REAL(sigemptyset)(&child_signal);
    TK_REAL(sigaddset)(&child_signal, SIGCHLD);
    ignore_keyboard();
    TK_REAL(pthread_sigmask)(SIG_BLOCK, &child_signal, &before);
    int failed = spawn_shell(&child, command, &before);
    if (failed)
        status = 127 << 8; /* as if the shell had not started */
    else
        while (TK_REAL(waitpid)(child, &status, 0) < 0)
            if (errno != EINTR) {
                status = -1;
                break;
            }
    heed_keyboard();
    int saved = errno;
    TK_REAL(pthread_sigmask)(SIG_SETMASK, &before, NULL);
    errno = failed ? failed : saved;
    return status;
}

/* Its file remembers the child inside the C library: so the environment has the session while it starts the shell. */
TK_EXPORT FILE *popen(const char *command, const char *mode)
{
    if (!tk_hands_on())
        return TK_REAL(popen)(command, mode);
    char room[tk_hand_on_bytes(environ)] __attribute__((aligned(16)));
    TK_REAL(pthread_mutex_lock)(&mutex);
    char **theirs = environ, **ours = tk_hand_on(theirs, room);
    environ = ours;
    FILE *file = TK_REAL(popen)(command, mode);
    if (environ == ours)
        environ = theirs;
    TK_REAL(pthread_mutex_unlock)(&mutex);
    return file;
}
