/* fork. The child leaves its parent's pool; with --follow-fork it asks for one of its own and goes on in it, under the
 * numbers that its streams have: its trace is its parent's up to fork_begin, and then its own. */
#include "preload_record.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In a forked child: go to scratch memory. */
static void leave_pool(void)
{
    tk_pool = NULL;
    tk_unlock(); /* another thread of the parent may have held it */
    tk_scratch();
}

/* The parent when it began to fork. */
static __thread struct {
    uint64_t ticket, area_used;
    uint32_t images, epoch, images_lost;
    int connection; /* made before, so that `record` knows that somebody will come; -1: none */
} point __attribute__((tls_model("initial-exec")));

static void begin_fork(void)
{
    struct tk_pool *pool = tk_pool;
    point.connection = pool && tk_following() ? tk_connect() : -1;
    if (point.connection < 0)
        return;
    point.images = __atomic_load_n(&pool->images, __ATOMIC_ACQUIRE);
    point.area_used = pool->area_used;
    point.epoch = __atomic_load_n(&tk_counters.epoch, __ATOMIC_SEQ_CST);
    point.images_lost = pool->images_lost;
    point.ticket = tk_ticket();
    const struct tk_request notice = {TK_WILL_FORK, pool->owner, point.ticket};
    syscall(SYS_sendto, point.connection, &notice, sizeof notice, MSG_NOSIGNAL, NULL, 0);
    if (tk_noting())
        TK_RECORD1(fork_begin, point.ticket);
}

/* The new pool knows the images that the old one knew, by the same numbers. */
static void inherit_images(const struct tk_layout *to, const struct tk_layout *from)
{
    struct tk_pool *pool = to->pool;
    tk_open_images(to);
    memcpy((char *)pool + to->area_offset, (const char *)from->pool + from->area_offset, point.area_used);
    memcpy(pool->image, from->pool->image, point.images * sizeof *pool->image);
    for (uint32_t number = 0; number < point.images; number++)
        if (pool->image[number].unloaded > point.epoch)
            pool->image[number].unloaded = 0;
    pool->area_used = point.area_used;
    pool->images_lost = point.images_lost;
    __atomic_store_n(&pool->images, point.images, __ATOMIC_RELEASE);
    tk_close_images(to);
}

static void parent_forked(void)
{
    if (point.connection >= 0)
        syscall(SYS_close, point.connection);
}

/* Private zeros where the parent's pool was: what a handler of the parent interrupted may still write there. */
static void cover(const struct tk_layout *old)
{
    syscall(SYS_mmap, old->pool, old->bytes, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1L, 0L);
}

/* In the child. Inside a signal handler it is not followed: what the handler interrupted has an open record. */
static void end_fork(void)
{
    const struct tk_layout old = tk_layout;
    struct tk_layout layout;
    struct tk_thread *thread = tk_current;
    if (!tk_pool)
        return;
    uint64_t signals;
    tk_block_signals(&signals);
    const struct tk_request request = {TK_START_FORK, old.pool->owner, point.ticket};
    int follow = point.connection >= 0 && thread && thread->depth == 0;
    leave_pool();
    follow = follow && tk_request_pool(point.connection, &request, &layout);
    parent_forked();
    if (follow)
        inherit_images(&layout, &old);
    cover(&old);
    tk_forget_threads(thread);
    tk_free_atomics();
    if (follow) {
        uint32_t streams = tk_counters.streams;
        tk_use_pool(&layout);
        tk_counters.epoch = point.epoch;
        tk_counters.ticket = point.ticket + 1;
        tk_counters.streams = layout.exchange->streams = streams;
        tk_begin_thread(thread);
        if (tk_windows.paused)
            tk_start_clock();
        if (tk_noting())
            TK_RECORD2(program_start, tk_ticket(), (uint64_t)getpid());
    }
    tk_restore_signals(&signals);
}

void tk_watch_forks(void)
{
    pthread_atfork(begin_fork, parent_forked, end_fork);
}

/* In the parent. */
static void note_child(pid_t child)
{
    if (!tk_following())
        __atomic_fetch_add(&tk_layout.exchange->forked, 1, __ATOMIC_RELAXED);
    if (tk_noting())
        TK_RECORD2(fork, tk_ticket(), (uint64_t)child);
}

TK_EXPORT pid_t fork(void)
{
    pid_t child = TK_REAL(fork)();
    if (child > 0 && tk_pool)
        note_child(child);
    return child;
}

/* No handlers run at this one: in the child nothing but the bare minimum may. */
pid_t _Fork(void);

TK_EXPORT pid_t _Fork(void)
{
    int by_program = TK_BY_PROGRAM(); /* or by fork, which has handlers */
    pid_t child = TK_REAL(_Fork)();
    if (!by_program)
        return child;
    if (child > 0 && tk_pool)
        note_child(child);
    if (child == 0 && tk_pool) {
        leave_pool();
        cover(&tk_layout);
        tk_forget_threads(tk_current);
        tk_free_atomics();
    }
    return child;
}
