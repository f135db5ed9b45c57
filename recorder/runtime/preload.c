/* Claiming the pool: the first process that registers an instrumented image gets it, all others stay untouched. */
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

__thread struct tk_state __tk_state;

struct tk_pool *tk_pool;

TK_EXPORT const struct tk_api __tk_api = {TK_API_VERSION, 0, tk_flip, tk_landing, tk_load, tk_unload};

static int lock_word;

void tk_lock(void)
{
    while (__atomic_exchange_n(&lock_word, 1, __ATOMIC_ACQUIRE))
        sched_yield();
}

void tk_unlock(void)
{
    __atomic_store_n(&lock_word, 0, __ATOMIC_RELEASE);
}

void *tk_find_real(void **slot, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    __atomic_store_n(slot, found, __ATOMIC_RELAXED);
    return found;
}

/* The environment is edited in place: setenv would allocate, and main's envp must agree. */
static char **find_variable(const char *name)
{
    size_t length = strlen(name);
    for (char **entry = environ; entry && *entry; entry++)
        if (!strncmp(*entry, name, length) && (*entry)[length] == '=')
            return entry;
    return NULL;
}

static void remove_variable(const char *name)
{
    char **entry = find_variable(name);
    for (; entry && *entry; entry++)
        entry[0] = entry[1];
}

/* `record` put this library first in LD_PRELOAD; what the user had there stands behind the colon. */
static void restore_environment(void)
{
    remove_variable("TRACEKIT_POOL");
    char **entry = find_variable("LD_PRELOAD");
    if (!entry)
        return;
    char *value = *entry + strlen("LD_PRELOAD=");
    char *colon = strchr(value, ':');
    if (colon)
        memmove(value, colon + 1, strlen(colon + 1) + 1);
    else
        remove_variable("LD_PRELOAD");
}

static struct tk_pool *map_pool(int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || (size_t)status.st_size < sizeof(struct tk_pool))
        return NULL;
    struct tk_pool *pool = mmap(NULL, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (pool == MAP_FAILED)
        return NULL;
    uint32_t nobody = 0;
    if (pool->magic == TK_POOL_MAGIC && pool->bytes == (uint64_t)status.st_size &&
        __atomic_compare_exchange_n(&pool->owner, &nobody, (uint32_t)getpid(), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return pool;
    munmap(pool, status.st_size);
    return NULL;
}

static void claim_pool(void)
{
    static int tried;
    if (tried++)
        return;
    const char *value = getenv("TRACEKIT_POOL");
    if (!value)
        return;
    int fd = atoi(value);
    struct tk_pool *pool = map_pool(fd);
    if (!pool)
        return;
    close(fd);
    restore_environment();
    tk_find_linker();
    tk_pool = pool;
    tk_watch_process();
    tk_watch_threads();
    tk_begin_thread(tk_new_thread(getpid() == gettid() ? 0 : TK_NO_STREAM));
    tk_wrap_handlers();
    if (tk_recording())
        TK_RECORD2(program_start, tk_ticket(), (uint64_t)getpid());
}

void tk_load(const struct tk_image *image)
{
    int saved = errno;
    tk_lock();
    claim_pool();
    tk_unlock();
    if (tk_pool)
        tk_publish_image(image);
    errno = saved;
}

void tk_unload(const struct tk_image *image)
{
    int saved = errno;
    if (tk_pool)
        tk_retire_image(image);
    errno = saved;
}

void tk_leave_pool(void)
{
    tk_pool = NULL;
    lock_word = 0; /* another thread of the parent may have held it */
    tk_scratch();
}
