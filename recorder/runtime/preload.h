/* libtracekit-preload.so: what its files share. Everything here is private to the traced process. */
#ifndef TRACEKIT_PRELOAD_H
#define TRACEKIT_PRELOAD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <features.h>
#ifdef __GLIBC_USE /* its headers must not give what is interposed the names of newer standards */
#undef __GLIBC_USE_DEPRECATED_SCANF
#undef __GLIBC_USE_C2X_STRTOL
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_DEPRECATED_SCANF 1
#define __GLIBC_USE_C2X_STRTOL 0
#define __GLIBC_USE_C23_STRTOL 0
#endif
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compiler.h"
#include "format.h"
#include "pool.h"
#include "state.h"

#define TK_WATCHES 30 /* events of code: as many bits of tk_activation_layout.watched, the last two are filters' */
#define TK_MUTES 256  /* calls nested deeper do not mute, nor do they let be heard */
#define TK_HANDLER_LEVELS 8 /* handlers of one thread nested deeper run unrecorded */

struct tk_stream {
    uint32_t number; /* TK_NO_STREAM until it is first used */
    uint32_t thread, kind;
    uint32_t epoch;    /* of its buffer */
    uint64_t sequence; /* of the next buffer */
};

/* One nesting depth of signal handlers in a thread. */
struct tk_handler {
    struct tk_stream stream;
    struct tk_state own;         /* where its stream goes on at the next signal */
    struct tk_state interrupted; /* the state to return to */
    struct tk_activation *below; /* of what it interrupted */
    int silent;                  /* it began outside a window: `own` stays as it is */
    uintptr_t stack;             /* an address in the trampoline's frame */
    uintptr_t low, high;         /* the alternate stack, if it runs there; else 0, 0 */
    int signal;
};

/* A thread that comes to its check behind each record (preload_steps.c). */
struct tk_steps {
    uint64_t *memory;                /* of its records outside of windows; kept for ever */
    struct tk_activation *copy;      /* of `top`, there if `is_kept` */
    uint64_t *from, *to;             /* the records since the last check */
    const struct tk_activation *top; /* the innermost activation at the last check */
    int is_kept;
    int is_on, opens;     /* it steps; these records open a window, and are its first ones */
    struct tk_lines_ran { /* in these records, behind what opens it */
        uint32_t bits;
        uint64_t first, last;
    } later[4];
    int late; /* how many of them */
};

enum { TK_UNUSED, TK_RUNNING, TK_EXITED };

struct tk_thread {
    struct tk_thread *next;
    int use;
    int depth;              /* handlers that are open */
    struct tk_state *state; /* its __tk_state while it runs; changed under tk_lock */
    pthread_t handle;
    struct tk_stream stream;
    struct tk_state held; /* outside windows: where its stream goes on */
    uint32_t window;      /* the number of the window that it records; 0: none */
    uint32_t openings;    /* how often it has gone into one */
    int crossing;         /* it is on its way into a window or out of one */
    void *(*start)(void *);
    void *argument;
    struct tk_steps steps;
    struct {
        int is_muted, depth;
        uint32_t chosen;      /* by which choice of functions */
        const void *entering; /* the activation that begins, before it is in the list; NULL: none does */
        const struct tk_activation_layout *entered;
        struct {
            const char *activation;
            int was_muted; /* before */
        } call[TK_MUTES];
    } mute;        /* calls that muted it, or let it be heard (preload_filter.c) */
    int farewells; /* rounds of thread-specific destructors seen */
    int is_worker; /* of OpenMP's runtime: it does what another thread waits for */
    struct tk_handler handlers[TK_HANDLER_LEVELS];
};

/* What this process counts, out of the reach of stores that go astray in the pool. */
struct tk_counters {
    uint64_t ticket __attribute__((aligned(64)));  /* the next one */
    uint32_t streams __attribute__((aligned(64))); /* the next stream's number; 0 is the main thread */
    uint32_t buffers;                              /* of the pool, in use */
    uint32_t epoch;                                /* counts registrations of images */
    uint32_t abandoned;                            /* the collector is gone */
};

/* Windows: what is open, and whether all threads have been told. */
struct tk_windows {
    int paused;       /* this process records windows only */
    int calls;        /* opened by calls and not closed */
    int signalled;    /* opened by a signal */
    int unheard;      /* something changed while the list of threads was locked */
    uint32_t number;  /* of windows so far */
    uint32_t current; /* the number of the one that is open; 0: none is */
    uint64_t began;   /* nanoseconds: when the pool was claimed */
    int differ;       /* they have filters of their own */
    uint32_t asking;  /* if so: what asked for the one that is open */
    int may_step;     /* some rule waits for a line or a number of accesses, sooner or later */
    int steps;        /* what some rule waits for now: TK_COUNTING, TK_AWAITING_LINES */
};

enum { TK_COUNTING = 1, TK_AWAITING_LINES = 2 };

/* preload_map.c */
extern struct tk_pool *tk_pool;    /* NULL unless this process claimed it and did not leave it */
extern struct tk_layout tk_layout; /* where its parts are */
int tk_map_pool(int fd, struct tk_layout *layout);
void tk_open_images(const struct tk_layout *at);
void tk_close_images(const struct tk_layout *at);
int tk_open_buffer(const struct tk_layout *at, uint32_t number);
void *tk_own_pages(uint64_t bytes);

/* preload.c */
void *tk_find_real(void **slot, const char *name);
void *tk_find_real_for(void **slot, const char *name, const void *caller);
/* The thread has the lock, or is about to take it. */
extern __thread int tk_has_lock __attribute__((tls_model("initial-exec")));
void tk_lock(void);
int tk_lock_of_others(void);
void tk_await_lock(void);
void tk_unlock(void);

/* preload_claim.c */
void tk_load(const struct tk_image *image);
void tk_unload(const struct tk_image *image);

/* preload_session.c */
void tk_join_session(void);
int tk_following(void);
int tk_inherited_pool(void);
void tk_hide_session(void);
int tk_connect(void);
int tk_request_pool(int connection, const struct tk_request *request, struct tk_layout *layout);
int tk_hands_on(void);
size_t tk_hand_on_bytes(char *const *from);
char **tk_hand_on(char *const *from, char *room);

/* preload_streams.c */
extern struct tk_counters tk_counters;
extern struct tk_thread *tk_threads;
extern __thread struct tk_thread *tk_current __attribute__((tls_model("initial-exec")));
void tk_use_pool(const struct tk_layout *layout);
void tk_scratch(void);
struct tk_thread *tk_new_thread(uint32_t stream);
void tk_begin_thread(struct tk_thread *thread);
void tk_end_thread(void);
uint32_t tk_number_stream(void);
void tk_count_unrecorded(void);
void tk_open_stream(struct tk_stream *stream);
void tk_resume(const struct tk_state *state);
void tk_new_epoch(void);
struct tk_thread *tk_find_thread(pthread_t handle);
int tk_replace_exited(const struct tk_thread *thread);
void tk_forget_threads(struct tk_thread *kept);
void tk_do_without_calls(int without, int without_clock);
int tk_is_without_calls(void);
void tk_block_signals(uint64_t *before);
void tk_restore_signals(const uint64_t *before);
void tk_hand_over(void);
void tk_clear_limits(void);
void tk_check_epoch(void);
int tk_is_buffer_over(void);
void tk_flip(void);
uint64_t tk_nanoseconds(void);

/* preload_windows.c */
extern struct tk_windows tk_windows;
void tk_pause_process(void);
void tk_pause_thread(struct tk_thread *thread);
int tk_follow_window(void);
void tk_tell_threads(void);
void tk_window_call(int open);
int tk_is_window_signal(int signal, const void *info, int is_handled);
void tk_settle_windows(void);
void tk_note(enum tk_event event, int words, const uint64_t *values);

/* preload_rules.c */
uint32_t tk_open_rules(void);
void tk_read_rules(void);

/* preload_times.c */
void tk_look_at_the_clock(void);
uint64_t tk_next_change(void);
int tk_has_lengths(void);
int tk_is_counting(void);
int tk_look_at_the_count(void);

/* preload_watches.c */
int tk_awaits_lines(void);
const struct tk_window_event *tk_watched_line(int bit);
int tk_line_ran(uint32_t bits, uint64_t first, uint64_t last);
void tk_image_came(const char *name);
void tk_image_goes(const char *name);
void tk_signal_came(int signal);
void tk_watched(const struct tk_activation_layout *layout, const void *activation, int enters);
void tk_watch_layouts(const struct tk_image *image, const struct tk_code *code);

/* preload_steps.c */
uint64_t tk_count_accesses(void);
const void *tk_table(const struct tk_unit *unit, enum tk_table id, uint64_t *count);
void tk_enter_steps(const struct tk_image *image);
int tk_has_line(const struct tk_function *function, int bit);
int tk_step(void);
void tk_set_step(void);
void tk_move_step(struct tk_thread *thread);
void tk_end_steps(void);
int tk_tell_later(void);

/* preload_filter.c */
void tk_read_filter(void);
int tk_is_recorded_thread(uint32_t thread);
void tk_filter_layouts(const struct tk_image *image, const struct tk_code *code);
int tk_is_excluded(const struct tk_activation_layout *layout);
int tk_is_armed(const struct tk_activation_layout *layout, int open);
void tk_mute(const struct tk_activation_layout *layout, const void *activation, int enters);
void tk_unmute_landing(const void *place);
void tk_choose(uint32_t asking);
int tk_is_behind(const struct tk_thread *thread);
void tk_mute_anew(struct tk_thread *thread);
void tk_unfilter_layouts(const struct tk_code *code);

/* preload_clock.c */
void tk_start_clock(void);
void tk_wake_clock(void);
void tk_stop_clock(void);

/* preload_code.c */
void tk_enter_code(const struct tk_image *image, const struct tk_code *code);
void tk_leave_code(const struct tk_code *code);
void tk_arm(void);
void tk_each_code(void (*visit)(const struct tk_code *code));
const struct tk_activation_layout *tk_find_layout(uint64_t path);
struct tk_place { /* a call of a clean body, or a stack object during one */
    uintptr_t at;
    uint64_t path;
    const struct tk_site_object *object;
};
const struct tk_place *tk_find_place(uintptr_t low, uintptr_t at, const struct tk_place **objects, size_t *count);

/* preload_contexts.c */
void tk_resume_all(void);
void tk_resume_before(const struct tk_steps *steps);
void tk_resumed(struct tk_activation *activation, const void *lives);

/* static_program.c: in a static program the C library's own calls come through here, too, some of them before there is
 * thread-local storage. Its code lies behind the program's. What it ends with in place of a call seems to be called
 * from where it was called itself: here, whose code is a section of its own. */
#ifdef TK_STATIC
extern const char __tk_program_end[];
extern const char __start_tk_runtime[] __attribute__((visibility("hidden")));
extern const char __stop_tk_runtime[] __attribute__((visibility("hidden")));
extern __thread int tk_within_library;
static inline __attribute__((always_inline)) int tk_is_programs_call(uintptr_t from)
{
    return from < (uintptr_t)__tk_program_end &&
           from - (uintptr_t)__start_tk_runtime >= (uintptr_t)__stop_tk_runtime - (uintptr_t)__start_tk_runtime &&
           !tk_within_library;
}
#define TK_BY_PROGRAM() tk_is_programs_call((uintptr_t)__builtin_return_address(0))
#else
#define TK_BY_PROGRAM() 1
#endif

/* interceptors_allocators.c: the frame of the outermost call of an allocator that this thread is in, or NULL. What that
 * calls lies below. */
extern __thread const char *tk_allocator __attribute__((tls_model("initial-exec")));
static inline __attribute__((always_inline)) int tk_is_allocating(const void *frame)
{
    return (uintptr_t)frame < (uintptr_t)tk_allocator;
}
void tk_allocating(const struct tk_allocation *allocation);
void tk_allocated(const struct tk_allocation *allocation, size_t size, void *result);
void tk_leave_allocator(const void *frame);

/* preload_images.c */
void tk_publish_image(const struct tk_image *image);
void tk_retire_image(const struct tk_image *image);
const char *tk_image_name(const struct tk_image *image);

/* interceptors_signals.c */
void tk_landing(void *frame);
void tk_wrap_handlers(void);

/* interceptors_exit.c */
void tk_await_others(void);

/* interceptors_threads.c */
extern int tk_has_threads; /* the program has made a thread */

/* interceptors_order.c */
void tk_release(uint64_t object, uint64_t kind);
void tk_acquire(uint64_t object, uint64_t kind);
void tk_atomic_begin(const void *address);
void tk_atomic_end(const void *address, uint32_t order);
void tk_fence(uint32_t order);
void tk_free_atomics(void);

/* preload.c, for interceptors_openmp.c */
struct tk_openmp {
    uintptr_t low, bytes; /* the code of OpenMP's runtime; no bytes: it is not known */
    void *library;
};
extern struct tk_openmp tk_openmp;
extern __thread int tk_openmp_tool;        /* this thread is in another OMPT tool */
extern __thread const void *tk_given_back; /* what it gives back by omp_free, while it does */

/* libomp cuts blocks of up to nearly this size from larger ones, which it frees when all that was cut is given back. */
#define TK_OPENMP_POOL ((1u << 20) + 64)

/* preload_linker.c: not in a static program */
void tk_find_linker(void);
int tk_is_linker(uintptr_t code);
void tk_keep_linker_block(uintptr_t block);
int tk_forget_linker_block(uintptr_t block);

/* interceptors_threads.c, preload_fork.c, interceptors_process.c, interceptors_mappings.c */
void tk_watch_threads(void);
void tk_watch_forks(void);
void tk_watch_process(void);
void tk_watch_mappings(void);

/* The next definition of an interposed function: the linker's, in a static program. */
#ifdef TK_STATIC
#define TK_REAL(name) \
    ({ \
        extern __typeof__(name) __real_##name; \
        &__real_##name; \
    })
#else
#define TK_REAL(name) \
    ({ \
        static void *real_##name; \
        (__typeof__(&name))(TK_LIKELY(real_##name) \
                                ? real_##name \
                                : tk_find_real_for(&real_##name, #name, __builtin_return_address(0))); \
    })
#endif

/* The runtime's own mappings: mmap itself is interposed. NULL if there is no memory. */
static inline void *tk_mmap(size_t bytes, int flags, int fd)
{
    void *memory = (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, flags, (long)fd, 0L);
    return memory == MAP_FAILED ? NULL : memory;
}

static inline void tk_munmap(void *memory, size_t bytes)
{
    syscall(SYS_munmap, memory, bytes);
}

/* Whether what this thread does now is recorded. */
static inline int tk_recording(void)
{
    return __tk_state.stream != NULL;
}

/* Whether the thread's stream waits while it writes to scratch memory: outside a window, or in an allocator. */
static inline int tk_is_parked(void)
{
    return !__tk_state.stream && tk_current && tk_current->held.stream && tk_current->depth == 0;
}

/* Whether it is outside a window, where only what has a ticket is recorded: objects, locks, threads. */
static inline int tk_is_paused(void)
{
    return tk_windows.paused && tk_is_parked();
}

/* Whether events with tickets are recorded: inside and outside of windows. A thread that has to look around does so
 * now, before it takes a ticket. */
static inline int tk_noting(void)
{
    if (TK_UNLIKELY(tk_windows.paused && !__tk_state.stream && __tk_state.pos >= __tk_state.limit))
        tk_flip();
    return tk_recording() || tk_is_paused();
}

/* Whether a call is the program's: what OpenMP's runtime and its tools lock, or do in their memory, is not. */
static inline int tk_is_programs(const void *caller)
{
    return (uintptr_t)caller - tk_openmp.low >= tk_openmp.bytes && !tk_openmp_tool;
}

static inline int tk_noting_for(const void *caller)
{
    return tk_noting() && tk_is_programs(caller);
}

static inline int tk_recording_for(const void *caller)
{
    if (TK_UNLIKELY(tk_windows.may_step && !__tk_state.stream && __tk_state.pos >= __tk_state.limit))
        tk_flip();
    return tk_recording() && tk_is_programs(caller);
}

/* glibc's word on whether the process has no other thread; other C libraries have none. */
extern char __libc_single_threaded __attribute__((weak));

static inline uint64_t tk_next_ticket(void)
{
#ifdef __x86_64__
    /* Without `lock` it takes a fifth of the time, and a signal handler does not come between. */
    if (&__libc_single_threaded && __libc_single_threaded) {
        uint64_t ticket = 1;
        __asm__ volatile("xaddq %0, %1" : "+r"(ticket), "+m"(tk_counters.ticket));
        return ticket;
    }
#endif
    return __atomic_fetch_add(&tk_counters.ticket, 1, __ATOMIC_RELAXED);
}

static inline uint64_t tk_ticket(void)
{
    return TK_LIKELY(tk_pool != NULL) ? tk_next_ticket() : 0;
}

#endif
