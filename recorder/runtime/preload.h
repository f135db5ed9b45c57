/* libtracekit-preload.so: what its files share. Everything here is private to the traced process. */
#ifndef TRACEKIT_PRELOAD_H
#define TRACEKIT_PRELOAD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format.h"
#include "pool.h"
#include "state.h"

#define TK_EXPORT __attribute__((visibility("default")))
#define TK_LIKELY(x) __builtin_expect(!!(x), 1)
#define TK_UNLIKELY(x) __builtin_expect(!!(x), 0)

#define TK_HANDLER_LEVELS 8 /* handlers of one thread nested deeper run unrecorded */

struct tk_stream {
    uint32_t number; /* TK_NO_STREAM until it is first used */
    uint32_t thread, kind;
    uint64_t sequence; /* of the next buffer */
};

/* One nesting depth of signal handlers in a thread. */
struct tk_handler {
    struct tk_stream stream;
    struct tk_state own;         /* where its stream goes on at the next signal */
    struct tk_state interrupted; /* the state to return to */
    uintptr_t stack;             /* an address in the trampoline's frame */
    uintptr_t low, high;         /* the alternate stack, if it runs there; else 0, 0 */
    int signal;
};

enum { TK_UNUSED, TK_RUNNING, TK_EXITED };

struct tk_thread {
    struct tk_thread *next;
    int use;
    int depth; /* handlers that are open */
    struct tk_state *state; /* its __tk_state while it runs; changed under tk_lock */
    pthread_t handle;
    struct tk_stream stream;
    void *(*start)(void *);
    void *argument;
    int farewells; /* rounds of thread-specific destructors seen */
    struct tk_handler handlers[TK_HANDLER_LEVELS];
};

/* preload.c */
extern struct tk_pool *tk_pool; /* NULL unless this process claimed it and did not leave it */
void *tk_find_real(void **slot, const char *name);
void tk_load(const struct tk_image *image);
void tk_unload(const struct tk_image *image);
void tk_lock(void);
void tk_unlock(void);
void tk_leave_pool(void); /* in a forked child: go to scratch memory */
struct tk_pool *tk_map_pool(int fd);

/* preload_session.c */
void tk_join_session(void);
int tk_following(void);
int tk_inherited_pool(void);
void tk_hide_session(void);
int tk_connect(void);
struct tk_pool *tk_request_pool(int connection, const struct tk_request *request);
int tk_hands_on(void);
size_t tk_hand_on_bytes(char *const *from);
char **tk_hand_on(char *const *from, char *room);

/* preload_streams.c */
extern __thread struct tk_thread *tk_current __attribute__((tls_model("initial-exec")));
void tk_flip(void);
void tk_scratch(void);
struct tk_thread *tk_new_thread(uint32_t stream);
void tk_begin_thread(struct tk_thread *thread);
void tk_end_thread(void);
void tk_open_stream(struct tk_stream *stream);
void tk_resume(const struct tk_state *state);
void tk_new_epoch(void);
struct tk_thread *tk_find_thread(pthread_t handle);
void tk_forget_threads(struct tk_thread *kept);
void tk_block_signals(uint64_t *before);
void tk_restore_signals(const uint64_t *before);

/* preload_images.c */
void tk_publish_image(const struct tk_image *image);
void tk_retire_image(const struct tk_image *image);

/* preload_signals.c */
void tk_landing(void *frame);
void tk_wrap_handlers(void);

/* preload_threads.c, preload_fork.c, preload_process.c, preload_memory.c */
void tk_watch_threads(void);
void tk_watch_forks(void);
void tk_watch_process(void);
void tk_find_linker(void);

/* The next definition of an interposed function. */
#define TK_REAL(name) \
    ({ \
        static void *real_##name; \
        (__typeof__(&name))(TK_LIKELY(real_##name) ? real_##name : tk_find_real(&real_##name, #name)); \
    })

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

static inline uint64_t tk_ticket(void)
{
    struct tk_pool *pool = tk_pool;
    return TK_LIKELY(pool != NULL) ? __atomic_fetch_add(&pool->ticket, 1, __ATOMIC_RELAXED) : 0;
}

/* Append an event to the thread's stream; its code becomes visible last, so a killed process leaves whole records. */
static inline __attribute__((always_inline)) void tk_record(enum tk_event event, int words, uint64_t a, uint64_t b,
                                                            uint64_t c, uint64_t d)
{
    if (TK_UNLIKELY(__tk_state.pos >= __tk_state.limit))
        tk_flip();
    uint64_t *pos = __tk_state.pos;
    const uint64_t values[4] = {a, b, c, d};
    for (int word = 0; word < words; word++)
        pos[1 + word] = values[word];
    __atomic_store_n(pos, (uint64_t)event, __ATOMIC_RELEASE);
    __tk_state.pos = pos + 1 + words;
}

#define TK_RECORD0(event) tk_record(TK_EVENT_##event, 0, 0, 0, 0, 0)
#define TK_RECORD1(event, a) tk_record(TK_EVENT_##event, 1, a, 0, 0, 0)
#define TK_RECORD2(event, a, b) tk_record(TK_EVENT_##event, 2, a, b, 0, 0)
#define TK_RECORD3(event, a, b, c) tk_record(TK_EVENT_##event, 3, a, b, c, 0)
#define TK_RECORD4(event, a, b, c, d) tk_record(TK_EVENT_##event, 4, a, b, c, d)

#endif
