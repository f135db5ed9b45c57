/* What instrumented code, the runtime in every image and the preloaded library agree on (docs/internals/runtime.md). */
#ifndef TRACEKIT_STATE_H
#define TRACEKIT_STATE_H

#include <stddef.h>
#include <stdint.h>

#define TK_API_VERSION 1
#define TK_API_LEVEL 5

/* pos < limit promises room for this many words from pos on. */
#define TK_SLACK 512

/* Where the thread writes. All zeros until its first block; `buffer` and `stream` belong to the library. */
struct tk_state {
    uint64_t *pos;
    uint64_t *limit;
    struct tk_buffer *buffer;
    struct tk_stream *stream; /* NULL: what is written goes to scratch memory */
};

/* Every image defines it; the dynamic linker makes them one (the executable's, else the library's). */
extern __thread struct tk_state __tk_state __attribute__((weak, visibility("default"), tls_model("initial-exec")));

/* What `tracekit cc --windows` keeps of each activation, on its stack, so that a window may open in the middle of it.
 */
struct tk_activation_layout {
    uint32_t registers, loops, objects;
    uint32_t watched;        /* by the library: it is to be told of calls of the function */
    const uint8_t *ids;      /* which function it is */
    const uint32_t *numbers; /* of the loops whose iterations are kept */
    uint8_t *armed;          /* what its clean body tests: 1 sends it into the instrumented one; NULL: it has none */
};

/* A call in a clean body (section `tk_sites`). Both count from where they stand. */
struct tk_site {
    int32_t at;   /* shortly before the call */
    int32_t path; /* id of the path that resumes an activation behind it; 0: it calls the instrumented body */
};

/* A stack object that is alive during such a call (section `tk_site_objects`). */
struct tk_site_object {
    int32_t at;          /* of the call, as above */
    uint32_t number;     /* the STACK_ALLOC, from 0 in its function */
    uint64_t size;       /* 0: it is moving, and `address` is that of two words in the frame, its address and size */
    uint8_t address[16]; /* an instruction that computes it: lea DISPLACEMENT(REGISTER), %rax */
};

/* What the runtime has to know of an image's code to open windows in it; each pair may be NULL. */
struct tk_code {
    struct tk_activation_layout *layouts, *layouts_end;
    const struct tk_site *sites, *sites_end;
    const struct tk_site_object *objects, *objects_end;
};

struct tk_activation {
    struct tk_activation *below; /* the one that called it, or NULL */
    const struct tk_activation_layout *layout;
    struct tk_activation *self; /* its address: what still stands where one was is one */
    uint64_t path;              /* number of the path that brings a reader to where it is */
    uint64_t frame;             /* the word of its FRAME; 0: it has none */
    uint64_t words[];           /* registers, iterations of loops, address and size of objects (0: not alive) */
};

/* The thread's innermost activation; one for all images, as the state. */
extern __thread struct tk_activation *__tk_activations
    __attribute__((weak, visibility("default"), tls_model("initial-exec")));

/* Rows of the sections `tk_functions` and `tk_globals`, written by the pass. */
struct tk_function {
    const uint8_t *ids; /* the address of byte k is the record id of path k */
    const void *unit;   /* the unit's tables (formats/image.py) */
    uint32_t function;  /* row of its table `functions` */
    uint32_t paths;
};

struct tk_global {
    void *address;
    const void *unit;
    uint32_t global; /* row of its table `globals` */
    uint32_t reserved;
};

/* What an image's constructor registers; either pair may be NULL. */
struct tk_image {
    const struct tk_function *functions, *functions_end;
    const struct tk_global *globals, *globals_end;
};

/* A call of an allocator of the program's own (pass/Allocators.cpp). */
enum { TK_ALLOCATION_NEW, TK_ALLOCATION_RESIZE, TK_ALLOCATION_FREE };
struct tk_allocation {
    int kind;
    void *block;        /* what it is given, or NULL */
    const char *frame;  /* an address in the frame of the function that calls the runtime */
    const void *caller; /* where that returns to */
};

/* The preloaded library's side, found by the name `__tk_api`. */
struct tk_api {
    uint32_t version;
    uint32_t level; /* TK_API_LEVEL: 0 ends with `unload`, 1 with `fence`, 3 with `resumed` */
    void (*flip)(void);
    void (*landing)(void *frame);
    void (*load)(const struct tk_image *image);
    void (*unload)(const struct tk_image *image);
    /* Around an atomic operation, and at a fence (cc --threads); `order`: TK_ATOMIC_... */
    void (*atomic_begin)(const void *address);
    void (*atomic_end)(const void *address, uint32_t order);
    void (*fence)(uint32_t order);
    void (*window)(int open); /* cc --windows, and so are the others */
    void (*watched)(const struct tk_activation_layout *layout, const void *activation, int enters);
    void (*code)(const struct tk_image *image, const struct tk_code *code);
    void (*code_leaves)(const struct tk_code *code);
    void (*resumed)(struct tk_activation *activation, const void *lives); /* level 4: `lives` may be NULL */
    /* Around a call of an allocator of the program's own; level 5 */
    void (*allocating)(const struct tk_allocation *allocation);
    void (*allocated)(const struct tk_allocation *allocation, size_t size, void *result);
};

extern const struct tk_api __tk_api;

#endif
