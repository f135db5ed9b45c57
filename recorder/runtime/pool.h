/* The memory that the traced program and the collector share: one memfd, no locks in it.
 *
 *     struct tk_pool with the images | image area (sparse) | struct tk_exchange | buffers
 *
 * A buffer changes hands by one compare-and-swap on its state, so a process that is killed at any instruction leaves
 * the other side nothing to wait for.
 *
 * A wrong program may write anything here. It can write the first two parts only while it registers an image, and the
 * buffers only that are in use (preload_map.c). What either side must be sure of, it keeps to itself: where the parts
 * are (struct tk_layout), and all that it counts. recorder/pool.py mirrors the structs of images. */
#ifndef TRACEKIT_POOL_H
#define TRACEKIT_POOL_H

#include <stdint.h>

#include "state.h"

#define TK_POOL_MAGIC 0x334c4f4f504b54ull /* "TKPOOL3" */
#define TK_MAX_IMAGES 4096
#define TK_MAX_BUFFERS 4096
#define TK_NO_STREAM 0xffffffffu

enum { TK_FREE, TK_OWNED, TK_FULL };
enum { TK_LIVE, TK_DISCARD };
enum { TK_THREAD, TK_HANDLER }; /* kinds of streams, as in a chunk's header */

/* What opens and closes windows; recorder/window_events.py has the same numbers. */
enum tk_happening {
    TK_HAPPENS_NEVER,
    TK_HAPPENS_TIME,     /* `number` nanoseconds since the start */
    TK_HAPPENS_CALL,     /* of the function `name`; `number` from 1 is which one, 0 each */
    TK_HAPPENS_RETURN,   /* of such a call */
    TK_HAPPENS_LINE,     /* `line` of the file `name` runs; `number` as of a call */
    TK_HAPPENS_ACCESSES, /* so many loads and stores of instrumented code */
    TK_HAPPENS_LOAD,     /* of the image `name` */
    TK_HAPPENS_UNLOAD,
    TK_HAPPENS_INTO,   /* a call of any function of the image `name`; `number` as of a call */
    TK_HAPPENS_END,    /* of the window by rule `line` */
    TK_HAPPENS_SIGNAL, /* the program handles signal `line` */
};

#define TK_NAME 256
struct tk_window_event {
    uint32_t kind; /* enum tk_happening */
    uint32_t line;
    uint64_t number;
    char name[TK_NAME];
};

#define TK_EVENTS 4
struct tk_window_condition {
    uint32_t enough; /* bit s: the events of set s are, in which event k is bit k */
    uint32_t count;
    struct tk_window_event event[TK_EVENTS];
};

/* A window that opens by itself: when `on` happens, or without one at times. */
#define TK_RULES 16
struct tk_window_rule {
    uint64_t from;           /* nanoseconds since the program's start, of a rule by time */
    uint64_t length;         /* of the window, in nanoseconds; 0: it does not end after a time */
    uint64_t every;          /* it opens again after so many nanoseconds; 0: once */
    uint64_t accesses;       /* of the window; 0: it does not end after a number */
    uint64_t every_accesses; /* it opens again after so many; 0: it does not */
    struct tk_window_condition on, till;
};

/* What is recorded inside windows; recorder/window_filters.py has the same numbers. */
enum { TK_FILTER_FUNCTION = 1, TK_FILTER_FILE, TK_FILTER_LIBRARY, TK_FILTER_THREAD };
#define TK_FILTERS 64
struct tk_filter {
    uint32_t of;       /* TK_FILTER_... */
    uint32_t excludes; /* it is left out; else what is not named so is */
    uint32_t rule;     /* in whose windows; TK_RULES: in all */
    uint32_t reserved;
    uint64_t number; /* of the thread */
    char name[TK_NAME];
};

struct tk_buffer {
    uint32_t state;  /* FREE -> OWNED by the program, OWNED -> FULL by it, FULL -> FREE by the collector */
    uint32_t stream; /* TK_NO_STREAM while FREE; written last when a buffer is taken */
    uint32_t thread; /* stream number of the thread that writes */
    uint32_t kind;
    uint64_t sequence; /* counts the buffers of the stream from 0 */
    uint32_t epoch;    /* of the set of loaded images when it was taken */
    uint32_t words;    /* written; valid when FULL */
    uint64_t last;     /* its stream ends with it; valid when FULL */
    uint64_t reserved[3];
};

/* An image's registration. Offsets count from the pool's start. */
struct tk_pool_image {
    uint64_t low, span;                       /* ids are low .. low + span - 1 */
    uint64_t functions, units, globals, name; /* offsets of the rows below, of the file name */
    uint32_t function_rows, unit_rows, global_rows, name_bytes;
    uint32_t loaded, unloaded; /* epochs; unloaded is 0 while it is loaded */
    uint64_t identity;         /* where its rows stand in the program */
};

struct tk_pool_function {
    uint64_t first; /* id of path 0, minus low */
    uint32_t unit, function, paths, reserved;
};

struct tk_pool_unit {
    uint64_t offset, bytes;
};

struct tk_pool_global {
    uint64_t address;
    uint32_t unit, global;
};

/* To the program read-only, but while it registers an image. */
struct tk_pool {
    uint64_t magic;
    uint64_t bytes; /* of the whole mapping */
    uint64_t area_bytes;
    uint32_t buffer_words; /* of one buffer, the slack included */
    uint32_t buffers;      /* in use at first */
    uint32_t mode;         /* TK_LIVE or TK_DISCARD, set by the collector's side */
    uint32_t collector;    /* process id */
    uint32_t owner;        /* process id of the program that claimed the pool, 0 before */
    uint32_t images;       /* entries published */
    uint32_t images_lost;  /* registrations that did not fit */
    uint32_t windows;      /* only what happens in windows is recorded */
    uint64_t area_used;
    struct tk_pool_image image[TK_MAX_IMAGES];
    uint32_t filters, reserved;
    struct tk_filter filter[TK_FILTERS];
    struct tk_window_rule rule[TK_RULES]; /* those that are all zeros are none */
};

/* What both sides write while the program runs. */
struct tk_exchange {
    uint32_t streams; /* numbered so far */
    uint32_t buffers; /* in use; grows to TK_MAX_BUFFERS if threads own them all */
    uint32_t status;  /* 256 + the exit status, once the program has said it */
    uint32_t polled;  /* the program cannot wake the collector: it looks for itself */
    uint64_t waited;  /* nanoseconds that threads of the program waited for a free buffer */
    uint64_t waits;
    uint64_t unrecorded; /* threads and handlers that found no buffer and ran unrecorded */
    uint64_t forked;     /* processes that came of fork, where none is followed */

    uint32_t filled __attribute__((aligned(64))); /* futex: counts buffers handed to the collector */
    uint32_t collector_sleeps;
    uint32_t freed __attribute__((aligned(64))); /* futex: counts buffers handed back */
    uint32_t waiting;                            /* threads that wait for one */

    struct tk_buffer buffer[TK_MAX_BUFFERS] __attribute__((aligned(64)));
};

/* Where the parts of a mapped pool are. Each process has its own, which it never reads from the pool again. */
struct tk_layout {
    struct tk_pool *pool;
    struct tk_exchange *exchange;
    uint64_t *words; /* of the first buffer */
    uint64_t bytes, area_offset, area_bytes;
    uint32_t buffer_words;
};

_Static_assert(sizeof(struct tk_buffer) == 64, "a buffer's state has its cache line to itself");
_Static_assert(sizeof(struct tk_pool_image) == 80 && sizeof(struct tk_pool_function) == 24 &&
                   sizeof(struct tk_pool_unit) == 16 && sizeof(struct tk_pool_global) == 16,
               "mirrored in recorder/pool.py");

/* What a process that wants to be recorded says on the socket of `record --follow-fork`; the answer is a pool's
 * descriptor, or none. Mirrored in recorder/follow.py. */
enum { TK_START_PROGRAM, TK_START_FORK, TK_WILL_FORK };

struct tk_request {
    uint64_t start;  /* TK_START_..., or TK_WILL_FORK: no answer; the child will ask on this connection */
    uint64_t parent; /* process id */
    uint64_t ticket; /* TK_START_FORK: of the parent's fork_begin */
};

static inline uint64_t tk_pages(uint64_t bytes)
{
    return (bytes + 4095) & ~(uint64_t)4095;
}

/* `area_bytes` is a multiple of the page size. */
static inline struct tk_layout tk_layout_of(void *memory, uint32_t buffer_words, uint64_t area_bytes)
{
    const uint64_t area_offset = tk_pages(sizeof(struct tk_pool)), exchange = area_offset + area_bytes;
    const uint64_t buffers = exchange + tk_pages(sizeof(struct tk_exchange));
    return (struct tk_layout){.pool = memory,
                              .exchange = (struct tk_exchange *)((char *)memory + exchange),
                              .words = (uint64_t *)((char *)memory + buffers),
                              .bytes = buffers + (uint64_t)TK_MAX_BUFFERS * buffer_words * sizeof(uint64_t),
                              .area_offset = area_offset,
                              .area_bytes = area_bytes,
                              .buffer_words = buffer_words};
}

static inline uint64_t *tk_buffer_words(const struct tk_layout *at, const struct tk_buffer *buffer)
{
    return at->words + (uint64_t)(buffer - at->exchange->buffer) * at->buffer_words;
}

#endif
