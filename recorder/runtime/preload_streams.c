/* Streams and buffers: one stream for each thread, one for each depth of its signal handlers.
 *
 * Everything here may run inside a signal handler: no locks but tk_lock (taken only where a thread ends
 * or an image comes or goes), no allocation but mmap. */
#include "preload.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOKS (1u << 26)             /* for a tenth of a second */
#define FLOW 8                       /* one of so many buffers at least is not a thread's, but on its way */
#define SCRATCH_WORDS (2 * TK_SLACK) /* a quarter of the cache next to a core, so the program keeps the rest */

struct tk_counters tk_counters;

__thread struct tk_thread *tk_current __attribute__((tls_model("initial-exec")));

struct tk_thread *tk_threads; /* grows at the head, never shrinks; entries are used again */

/* What is written here is never read. Threads share a few, as in image_runtime.c. */
static uint64_t *scratch_words(void)
{
    static uint64_t scratch[16][SCRATCH_WORDS];
    return scratch[((uintptr_t)&__tk_state >> 12) * 0x9e3779b97f4a7c15u >> 60];
}

void tk_scratch(void)
{
    uint64_t *words = scratch_words();
    __tk_state = (struct tk_state){words, words + SCRATCH_WORDS - TK_SLACK, NULL, NULL};
}

/* Instrumented code that runs on outside of windows, or in an allocator, has filled its scratch memory. If nobody has
 * cleared the limit there is nothing else to see to; for windows by time the clock does that. */
static int begin_scratch_again(void)
{
    uint64_t *words = scratch_words();
    if (tk_windows.may_step || !tk_is_parked() || __tk_state.limit != words + SCRATCH_WORDS - TK_SLACK)
        return 0;
    __tk_state.pos = words;
    return 1;
}

/* In a sandbox (seccomp) a system call that the program does not need may be its death: from then on buffers change
 * hands without any. Pages are faulted in one by one, threads that need a buffer look for one, so does the collector,
 * and signals stay as they are. In the strict mode of seccomp nobody may look at the clock, either: it stands. */
static int is_without_calls;
static uint64_t clock_stands_at;

uint64_t tk_nanoseconds(void)
{
    struct timespec now;
    if (clock_stands_at)
        return clock_stands_at;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void tk_do_without_calls(int without, int without_clock)
{
    clock_stands_at = without_clock ? tk_nanoseconds() : 0;
    __atomic_store_n(&is_without_calls, without, __ATOMIC_RELAXED);
    if (tk_pool)
        __atomic_store_n(&tk_layout.exchange->polled, without != 0, __ATOMIC_RELAXED);
}

int tk_is_without_calls(void)
{
    return is_without_calls;
}

/* Until the word has another value, for a while. */
static void look_at(const uint32_t *word, uint32_t value)
{
    for (uint32_t left = LOOKS; left && __atomic_load_n(word, __ATOMIC_RELAXED) == value; left--) {
    }
}

static void futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
    syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

/* From now on this process writes to the pool that is there, the first to do so. */
void tk_use_pool(const struct tk_layout *layout)
{
    tk_counters = (struct tk_counters){.streams = 1, .buffers = layout->pool->buffers};
    tk_layout = *layout;
    tk_pool = layout->pool;
    if (!tk_windows.began) /* a forked child goes on with its parent's clock */
        tk_windows.began = tk_nanoseconds();
}

static int is_live(const struct tk_pool *pool)
{
    return __atomic_load_n(&pool->mode, __ATOMIC_RELAXED) == TK_LIVE && !tk_counters.abandoned;
}

/* The collector knows of a number before it is given out. */
uint32_t tk_number_stream(void)
{
    __atomic_fetch_add(&tk_layout.exchange->streams, 1, __ATOMIC_RELAXED);
    return __atomic_fetch_add(&tk_counters.streams, 1, __ATOMIC_RELAXED);
}

void tk_count_unrecorded(void)
{
    __atomic_fetch_add(&tk_layout.exchange->unrecorded, 1, __ATOMIC_RELAXED);
}

/* Wait until the collector frees a buffer; go on without it if it is gone. */
static void wait_for_buffer(const struct tk_pool *pool, struct tk_exchange *exchange, uint32_t freed)
{
    const struct timespec timeout = {0, 100000000};
    uint64_t begin = tk_nanoseconds();
    __atomic_fetch_add(&exchange->waiting, 1, __ATOMIC_SEQ_CST);
    if (is_without_calls)
        look_at(&exchange->freed, freed);
    else
        futex(&exchange->freed, FUTEX_WAIT, freed, &timeout);
    __atomic_fetch_sub(&exchange->waiting, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&exchange->waited, tk_nanoseconds() - begin, __ATOMIC_RELAXED);
    __atomic_fetch_add(&exchange->waits, 1, __ATOMIC_RELAXED);
    if (!is_without_calls && kill((pid_t)pool->collector, 0) != 0 && errno == ESRCH)
        __atomic_store_n(&tk_counters.abandoned, 1, __ATOMIC_RELAXED);
}

/* Fault a buffer's pages in at once when this process first takes it for a stream that has filled one already: one call
 * instead of 64 faults. Most threads of a program with many write no more than a page. */
static void touch(struct tk_buffer *buffer, uint32_t number)
{
    static uint8_t touched[TK_MAX_BUFFERS];
    if (touched[number] || is_without_calls)
        return;
    touched[number] = 1;
#ifdef MADV_POPULATE_WRITE
    /* Not by the C library's function: UCX puts code into it that takes locks, which are recorded. */
    syscall(SYS_madvise, tk_buffer_words(&tk_layout, buffer), tk_layout.buffer_words * sizeof(uint64_t),
            (long)MADV_POPULATE_WRITE);
#endif
}

/* Flipping and changing streams are done in one piece: a handler that leaves them by siglongjmp would leave a buffer
 * that is half given away. */
void tk_block_signals(uint64_t *before)
{
    const uint64_t all = ~(uint64_t)0;
    if (is_without_calls)
        return;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, before, sizeof all);
}

void tk_restore_signals(const uint64_t *before)
{
    if (is_without_calls)
        return;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, sizeof *before);
}

/* One more buffer is in use. 0 if there may be none. */
static int add_buffer(struct tk_exchange *exchange, uint32_t buffers)
{
    if (buffers == TK_MAX_BUFFERS || !tk_open_buffer(&tk_layout, buffers))
        return 0;
    if (__atomic_compare_exchange_n(&tk_counters.buffers, &buffers, buffers + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        __atomic_fetch_add(&exchange->buffers, 1, __ATOMIC_RELEASE);
    return 1;
}

/* A free buffer, or NULL if the pool is (turned) to discard. The first free one: the fewer are in use, the more
 * of them stay in the caches. If nothing in the table of buffers is true, this ends all the same: there are no more
 * than TK_MAX_BUFFERS, and a collector that finds none of the full ones to be next turns the pool to discard. */
static struct tk_buffer *take_buffer(struct tk_pool *pool, struct tk_exchange *exchange)
{
    while (is_live(pool)) {
        uint32_t freed = __atomic_load_n(&exchange->freed, __ATOMIC_SEQ_CST);
        uint32_t buffers = __atomic_load_n(&tk_counters.buffers, __ATOMIC_RELAXED), full = 0;
        for (uint32_t number = 0; number < buffers; number++) {
            struct tk_buffer *buffer = &exchange->buffer[number];
            uint32_t state = __atomic_load_n(&buffer->state, __ATOMIC_RELAXED);
            full += state == TK_FULL;
            if (state == TK_FREE &&
                __atomic_compare_exchange_n(&buffer->state, &state, TK_OWNED, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                return buffer;
        }
        if (full * FLOW <= buffers && add_buffer(exchange, buffers))
            continue;
        if (!full)
            return NULL; /* more threads than buffers, all idle: nobody would ever free one */
        wait_for_buffer(pool, exchange, freed);
    }
    return NULL;
}

/* `last`: the stream ends with it. */
static void hand_over(struct tk_exchange *exchange, int last)
{
    struct tk_buffer *buffer = __tk_state.buffer;
    buffer->words = (uint32_t)(__tk_state.pos - tk_buffer_words(&tk_layout, buffer));
    buffer->last = last != 0;
    __atomic_store_n(&buffer->state, TK_FULL, __ATOMIC_RELEASE);
    __atomic_fetch_add(&exchange->filled, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&exchange->collector_sleeps, __ATOMIC_SEQ_CST) && !is_without_calls)
        futex(&exchange->filled, FUTEX_WAKE, 1, NULL);
}

/* An image that came or went after the buffer was stamped makes the next check flip. Sequentially consistent, against
 * tk_new_epoch: either it finds the new limit and clears it, or the new epoch is seen here. */
void tk_check_epoch(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__tk_state.stream && __tk_state.stream->epoch != __atomic_load_n(&tk_counters.epoch, __ATOMIC_SEQ_CST))
        __tk_state.limit = NULL;
    if (tk_windows.paused && tk_current && tk_current->depth == 0 && !tk_current->mute.is_muted &&
        tk_current->window != __atomic_load_n(&tk_windows.current, __ATOMIC_SEQ_CST) &&
        tk_is_recorded_thread(tk_current->stream.number))
        __tk_state.limit = NULL;
}

static void stamp_buffer(struct tk_stream *stream, struct tk_buffer *buffer)
{
    buffer->epoch = stream->epoch = __atomic_load_n(&tk_counters.epoch, __ATOMIC_SEQ_CST);
}

static void set_limit(void)
{
    uint64_t *words = tk_buffer_words(&tk_layout, __tk_state.buffer);
    __atomic_store_n(&__tk_state.limit, words + tk_layout.buffer_words - TK_SLACK, __ATOMIC_SEQ_CST);
    tk_check_epoch();
}

/* Give the thread's state a buffer for `stream`, or scratch memory. */
void tk_open_stream(struct tk_stream *stream)
{
    struct tk_pool *pool = tk_pool;
    struct tk_buffer *buffer = pool ? take_buffer(pool, tk_layout.exchange) : NULL;
    if (!buffer) {
        if (pool && is_live(pool))
            tk_count_unrecorded();
        tk_scratch();
        return;
    }
    if (stream->number == TK_NO_STREAM)
        stream->number = tk_number_stream();
    if (stream->thread == TK_NO_STREAM)
        stream->thread = stream->number;
    if (stream->sequence)
        touch(buffer, (uint32_t)(buffer - tk_layout.exchange->buffer));
    buffer->thread = stream->thread;
    buffer->kind = stream->kind;
    buffer->sequence = stream->sequence++;
    stamp_buffer(stream, buffer);
    __atomic_store_n(&buffer->stream, stream->number, __ATOMIC_RELEASE);
    __tk_state.pos = tk_buffer_words(&tk_layout, buffer);
    __tk_state.buffer = buffer;
    __tk_state.stream = stream;
    set_limit();
}

/* Continue where another state left off (a handler's stream, or what it interrupted). */
void tk_resume(const struct tk_state *state)
{
    __tk_state = *state;
    if (tk_pool)
        tk_check_epoch();
}

/* When and where the stream goes on, at the beginning of its buffer. */
static void note_hand_over(void)
{
    uint64_t *pos = __tk_state.pos;
    int processor = sched_getcpu();
    pos[1] = tk_nanoseconds() - tk_windows.began;
    pos[2] = processor < 0 ? 0 : (uint64_t)processor;
    __atomic_store_n(pos, (uint64_t)TK_EVENT_hand_over, __ATOMIC_RELEASE);
    __tk_state.pos = pos + 3;
}

static int is_full(void)
{
    const uint64_t *words = tk_buffer_words(&tk_layout, __tk_state.buffer);
    return __tk_state.pos >= words + tk_layout.buffer_words - TK_SLACK;
}

/* Whether the stream needs another buffer. */
int tk_is_buffer_over(void)
{
    return is_full() || __tk_state.stream->epoch != __atomic_load_n(&tk_counters.epoch, __ATOMIC_SEQ_CST);
}

/* The state's stream goes on in a buffer with room, of the present epoch. */
void tk_hand_over(void)
{
    if (__tk_state.pos == tk_buffer_words(&tk_layout, __tk_state.buffer)) {
        stamp_buffer(__tk_state.stream, __tk_state.buffer);
        set_limit();
    } else {
        int full = is_full();
        hand_over(tk_layout.exchange, 0);
        tk_open_stream(__tk_state.stream);
        if (full && __tk_state.stream)
            note_hand_over();
    }
}

void tk_flip(void)
{
    int saved = errno;
    uint64_t signals;
    struct tk_pool *pool = tk_pool;
    if (begin_scratch_again())
        return;
    if (tk_windows.may_step && tk_step()) {
        errno = saved;
        return;
    }
    tk_block_signals(&signals);
    int has_gone_over = tk_follow_window();
    if (tk_windows.may_step && tk_tell_later())
        has_gone_over |= tk_follow_window();
    if (has_gone_over && __tk_state.pos < __tk_state.limit) {
        /* it went over, and has room there */
    } else if (pool && __tk_state.stream) {
        tk_hand_over();
    } else if (pool && !tk_current) {
        tk_begin_thread(tk_new_thread(TK_NO_STREAM));
    } else {
        tk_scratch();
        if (tk_is_paused()) /* a window that opened meanwhile has cleared the limit before */
            tk_check_epoch();
    }
    tk_set_step();
    tk_restore_signals(&signals);
    errno = saved;
}

/* An entry of the list of threads, its stream numbered (TK_NO_STREAM: the next free number, when it is first used). */
struct tk_thread *tk_new_thread(uint32_t stream)
{
    struct tk_thread *thread = __atomic_load_n(&tk_threads, __ATOMIC_ACQUIRE);
    for (; thread; thread = thread->next) {
        int unused = TK_UNUSED;
        if (__atomic_compare_exchange_n(&thread->use, &unused, TK_RUNNING, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            break;
    }
    if (!thread) {
        thread = tk_own_pages(sizeof *thread);
        if (!thread)
            return NULL;
        thread->use = TK_RUNNING;
        thread->next = __atomic_load_n(&tk_threads, __ATOMIC_RELAXED);
        while (
            !__atomic_compare_exchange_n(&tk_threads, &thread->next, thread, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
        }
    }
    thread->depth = thread->farewells = thread->is_worker = 0;
    thread->state = NULL;
    thread->held = (struct tk_state){0};
    thread->window = 0;
    thread->steps.is_on = thread->steps.opens = thread->steps.late = 0;
    thread->mute.is_muted = thread->mute.depth = 0;
    thread->mute.chosen = 0;
    thread->mute.entering = NULL;
    thread->handle = 0;
    thread->stream = (struct tk_stream){stream, stream, TK_THREAD, 0, 0};
    for (int level = 0; level < TK_HANDLER_LEVELS; level++) {
        thread->handlers[level].stream = (struct tk_stream){TK_NO_STREAM, TK_NO_STREAM, TK_HANDLER, 0, 0};
        thread->handlers[level].own = (struct tk_state){0};
    }
    return thread;
}

void tk_begin_thread(struct tk_thread *thread)
{
    if (!thread) {
        tk_scratch();
        return;
    }
    tk_current = thread;
    thread->handle = pthread_self();
    tk_open_stream(&thread->stream);
    tk_pause_thread(thread);
    __atomic_store_n(&thread->state, &__tk_state, __ATOMIC_SEQ_CST);
    if (tk_pool)
        tk_check_epoch();
}

static int is_any_running(void)
{
    for (struct tk_thread *thread = __atomic_load_n(&tk_threads, __ATOMIC_ACQUIRE); thread; thread = thread->next)
        if (__atomic_load_n(&thread->use, __ATOMIC_ACQUIRE) == TK_RUNNING)
            return 1;
    return 0;
}

/* Hand over what the thread's streams hold; what it still writes afterwards goes to scratch memory. */
void tk_end_thread(void)
{
    struct tk_thread *thread = tk_current;
    struct tk_pool *pool = tk_pool;
    uint64_t signals;
    tk_block_signals(&signals);
    tk_lock();
    thread->state = NULL;
    tk_unlock();
    if (thread->held.stream) {
        __tk_state = thread->held;
        thread->held = (struct tk_state){0};
    }
    if (pool && __tk_state.stream)
        hand_over(tk_layout.exchange, 1);
    for (int level = 0; level < TK_HANDLER_LEVELS; level++) {
        __tk_state = thread->handlers[level].own;
        if (pool && __tk_state.stream)
            hand_over(tk_layout.exchange, 1);
    }
    tk_scratch();
    __atomic_store_n(&thread->use, TK_EXITED, __ATOMIC_RELEASE);
    if (tk_windows.paused && !is_any_running())
        tk_stop_clock();
    tk_restore_signals(&signals);
}

/* The newest thread that bears this handle, run out or not; handles are used again after a thread is joined. */
struct tk_thread *tk_find_thread(pthread_t handle)
{
    struct tk_thread *thread = __atomic_load_n(&tk_threads, __ATOMIC_ACQUIRE);
    struct tk_thread *exited = NULL;
    for (; thread; thread = thread->next) {
        int use = __atomic_load_n(&thread->use, __ATOMIC_ACQUIRE);
        if (use == TK_UNUSED || !pthread_equal(thread->handle, handle))
            continue;
        if (use == TK_RUNNING)
            return thread;
        exited = thread;
    }
    return exited;
}

/* Threads that ran out under the handle of `thread`, and that nobody joined, will not be joined any more: whether there
 * were any. */
int tk_replace_exited(const struct tk_thread *thread)
{
    int found = 0;
    for (struct tk_thread *other = __atomic_load_n(&tk_threads, __ATOMIC_ACQUIRE); other; other = other->next) {
        int exited = TK_EXITED;
        if (other != thread && pthread_equal(other->handle, thread->handle))
            found |=
                __atomic_compare_exchange_n(&other->use, &exited, TK_UNUSED, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    }
    return found;
}

/* In a forked child: only `kept` is there, its streams go on in another pool. What its handlers interrupted stops at
 * its next check: it may be in the middle of a record, in memory that nobody reads. */
void tk_forget_threads(struct tk_thread *kept)
{
    for (struct tk_thread *thread = __atomic_load_n(&tk_threads, __ATOMIC_ACQUIRE); thread; thread = thread->next) {
        thread->state = NULL;
        if (thread != kept)
            thread->use = TK_UNUSED;
    }
    if (!kept)
        return;
    kept->stream.sequence = 0;
    kept->held = (struct tk_state){0};
    for (int level = 0; level < TK_HANDLER_LEVELS; level++) {
        struct tk_handler *handler = &kept->handlers[level];
        handler->stream.sequence = 0;
        handler->own = (struct tk_state){0};
        handler->interrupted = (struct tk_state){handler->interrupted.pos, NULL, NULL, NULL};
    }
}

/* An image came or went: every thread takes a new buffer at its next check. The caller holds tk_lock. */
void tk_new_epoch(void)
{
    __atomic_fetch_add(&tk_counters.epoch, 1, __ATOMIC_SEQ_CST);
    tk_clear_limits();
}

/* Every thread comes here at its next check. The caller holds tk_lock. */
void tk_clear_limits(void)
{
    for (struct tk_thread *thread = __atomic_load_n(&tk_threads, __ATOMIC_ACQUIRE); thread; thread = thread->next)
        if (thread->state) {
            __atomic_store_n(&thread->state->limit, NULL, __ATOMIC_SEQ_CST);
            __atomic_store_n(&thread->held.limit, NULL, __ATOMIC_SEQ_CST);
        }
}
