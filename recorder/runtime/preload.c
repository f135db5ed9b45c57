/* Claiming the pool: the first process that registers an instrumented image gets it, all others stay untouched. */
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

__thread struct tk_state __tk_state;

struct tk_pool *tk_pool;

TK_EXPORT const struct tk_api __tk_api = {TK_API_VERSION, 0, tk_flip, tk_landing, tk_load, tk_unload};

void tk_watch_mappings(void);

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

/* Map the pool behind a descriptor and make it this process's own; NULL if it is none, or another's. */
struct tk_pool *tk_map_pool(int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || (size_t)status.st_size < sizeof(struct tk_pool))
        return NULL;
    struct tk_pool *pool = tk_mmap(status.st_size, MAP_SHARED, fd);
    if (!pool)
        return NULL;
    uint32_t nobody = 0;
    if (pool->magic == TK_POOL_MAGIC && pool->bytes == (uint64_t)status.st_size &&
        __atomic_compare_exchange_n(&pool->owner, &nobody, (uint32_t)getpid(), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return pool;
    tk_munmap(pool, status.st_size);
    return NULL;
}

/* The pool is inherited, or with --follow-fork asked for. */
static struct tk_pool *find_pool(void)
{
    tk_join_session();
    struct tk_pool *pool = NULL;
    int fd = tk_following() ? tk_connect() : tk_inherited_pool();
    if (fd >= 0 && tk_following()) {
        const struct tk_request request = {TK_START_PROGRAM, (uint64_t)getppid(), 0};
        pool = tk_request_pool(fd, &request);
        close(fd);
    } else if (fd >= 0 && (pool = tk_map_pool(fd))) {
        close(fd);
        tk_hide_session();
    }
    return pool;
}

static void claim_pool(void)
{
    static int tried;
    if (tried++)
        return;
    struct tk_pool *pool = find_pool();
    if (!pool)
        return;
    tk_find_linker();
    tk_pool = pool;
    tk_watch_forks();
    tk_watch_mappings();
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
