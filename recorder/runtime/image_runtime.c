/* The part of the runtime that is linked, hidden, into every instrumented image.
 *
 * It finds the preloaded library and passes on to it. Without one, records go round in a few static
 * buffers that nobody reads, so that the program runs as it would without instrumentation. */
#define _GNU_SOURCE
#include "probe.h"
#include "state.h"

#include <stdarg.h>
#include <stddef.h>

#define HIDDEN __attribute__((weak, visibility("hidden")))

__thread struct tk_state __tk_state;
__thread struct tk_activation *__tk_activations;

extern const struct tk_api __tk_api __attribute__((weak));
/* Weak, so that a static program does not pull in the dynamic linker. */
extern void *dlsym(void *handle, const char *name) __attribute__((weak));

extern const struct tk_function __start_tk_functions[] __attribute__((weak, visibility("hidden")));
extern const struct tk_function __stop_tk_functions[] __attribute__((weak, visibility("hidden")));
extern const struct tk_global __start_tk_globals[] __attribute__((weak, visibility("hidden")));
extern const struct tk_global __stop_tk_globals[] __attribute__((weak, visibility("hidden")));
extern struct tk_activation_layout __start_tk_activations[] __attribute__((weak, visibility("hidden")));
extern struct tk_activation_layout __stop_tk_activations[] __attribute__((weak, visibility("hidden")));
extern const struct tk_site __start_tk_sites[] __attribute__((weak, visibility("hidden")));
extern const struct tk_site __stop_tk_sites[] __attribute__((weak, visibility("hidden")));
extern const struct tk_site_object __start_tk_site_objects[] __attribute__((weak, visibility("hidden")));
extern const struct tk_site_object __stop_tk_site_objects[] __attribute__((weak, visibility("hidden")));

/* Weak and shared by the copies of this file that `ld -r` may have left in one image. */
HIDDEN int __tk_registrations;

static const struct tk_api *find_api(void)
{
    static const struct tk_api *api;
    static int looked;
    /* Set while dlsym allocates what it says about a name that is not there, if malloc is the program's own. */
    static __thread int looking __attribute__((tls_model("initial-exec")));
    if (looking)
        return NULL;
    if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
        const struct tk_api *found = &__tk_api;
        if (!found && dlsym) {
            looking = 1;
            found = dlsym(NULL, "__tk_api"); /* NULL is RTLD_DEFAULT */
            looking = 0;
        }
        if (found && found->version != TK_API_VERSION)
            found = NULL;
        __atomic_store_n(&api, found, __ATOMIC_RELAXED);
        __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&api, __ATOMIC_RELAXED);
}

/* Threads that share a scratch buffer overwrite each other's garbage; several buffers keep most of them apart. */
static void use_scratch(void)
{
    static uint64_t scratch[16][2048];
    uint64_t *buffer = scratch[((uintptr_t)&__tk_state >> 12) * 0x9e3779b97f4a7c15u >> 60];
    __tk_state.pos = buffer;
    __tk_state.limit = buffer + 2048 - TK_SLACK;
}

HIDDEN __attribute__((preserve_most)) void __tk_flip(void)
{
    const struct tk_api *api = find_api();
    if (api)
        api->flip();
    /* No library, or one that serves another state: something at the link (-Bsymbolic, a version script
     * that the driver did not see) made this image's own. It runs on, unrecorded. The limit alone does not
     * tell: another thread that loads an image clears that of the buffer which was given just now. */
    if (!__tk_state.buffer && __tk_state.pos >= __tk_state.limit)
        use_scratch();
}

HIDDEN void __tk_landing(void *frame)
{
    const struct tk_api *api = find_api();
    if (api)
        api->landing(frame);
}

/* Control came back by unwinding to a clean body, in whose frame `frame` lies. The activations that it passed over
 * leave the list: they would stand between those that come and those that still are. An abandoned stack elsewhere may
 * be gone from memory, so what lies far off stays. */
HIDDEN void __tk_unwound(const void *frame)
{
    enum { FAR = 1 << 26 };
    while (__tk_activations && (uintptr_t)__tk_activations < (uintptr_t)frame &&
           (uintptr_t)frame - (uintptr_t)__tk_activations < FAR)
        __tk_activations = __tk_activations->self == __tk_activations ? __tk_activations->below : NULL;
}

/* A setjmp of a clean body has returned once more: the list is as it was when control left it, with `below`. What
 * control has passed over is gone from the stack. */
HIDDEN void __tk_returned_again(void *frame, struct tk_activation *below)
{
    __tk_landing(frame);
    __tk_activations = below;
}

/* What the pass puts around atomic operations if the order of threads is asked for (cc --threads). */
static const struct tk_api *api_of_atomics(void)
{
    const struct tk_api *api = find_api();
    return api && api->level >= 1 ? api : NULL;
}

HIDDEN void __tk_atomic_begin(const void *address)
{
    const struct tk_api *api = api_of_atomics();
    if (api)
        api->atomic_begin(address);
}

HIDDEN void __tk_atomic_end(const void *address, uint32_t order)
{
    const struct tk_api *api = api_of_atomics();
    if (api)
        api->atomic_end(address, order);
}

HIDDEN void __tk_fence(uint32_t order)
{
    const struct tk_api *api = api_of_atomics();
    if (api)
        api->fence(order);
}

/* What tracekit.h calls. */
HIDDEN void __tk_window(int open)
{
    const struct tk_api *api = find_api();
    if (api && api->level >= 3)
        api->window(open);
}

/* A call of a function that opens a window, before it is recorded, or its return. */
HIDDEN __attribute__((preserve_most)) void __tk_watched(const struct tk_activation_layout *layout,
                                                        const void *activation, int enters)
{
    const struct tk_api *api = find_api();
    if (api && api->level >= 3)
        api->watched(layout, activation, enters);
}

/* Control went over from a clean body into the instrumented one, whose activation is filled in; `lives` lies in the
 * clean one's frame, and is NULL if the trace knows the activation by its FRAME address. */
HIDDEN void __tk_resumed(struct tk_activation *activation, const void *lives)
{
    const struct tk_api *api = find_api();
    if (api && api->level >= (lives ? 3 : 4))
        api->resumed(activation, lives);
}

/* What the pass puts around what an allocator of the program's own does. */
static const struct tk_api *api_of_allocators(void)
{
    const struct tk_api *api = find_api();
    return api && api->level >= 5 ? api : NULL;
}

HIDDEN void __tk_allocating(int kind, void *block, const char *frame, const void *caller)
{
    const struct tk_api *api = api_of_allocators();
    struct tk_allocation allocation = {kind, block, frame, caller};
    if (api)
        api->allocating(&allocation);
}

HIDDEN void __tk_allocated(int kind, void *block, size_t size, void *result, const char *frame, const void *caller)
{
    const struct tk_api *api = api_of_allocators();
    struct tk_allocation allocation = {kind, block, frame, caller};
    if (api)
        api->allocated(&allocation, size, result);
}

/* What the pass puts at the entry and the returns of functions that `cc --intercept` names. */
extern __typeof__(__tk_call) __tk_call __attribute__((weak));

HIDDEN void __tk_probe(struct tk_probe *probe, uint32_t leaves, uint64_t result, ...)
{
    static __typeof__(__tk_call) *call;
    if (!find_api())
        return;
    if (!__atomic_load_n(&call, __ATOMIC_RELAXED)) {
        __typeof__(__tk_call) *found = __tk_call;
        if (!found && dlsym)
            found = (__typeof__(__tk_call) *)dlsym(NULL, "__tk_call");
        __atomic_store_n(&call, found, __ATOMIC_RELAXED);
    }
    if (!call)
        return;
    uint64_t arguments[TK_MOST_ARGUMENTS] = {0};
    va_list list;
    va_start(list, result);
    for (uint32_t index = 0; index < probe->arguments && index < TK_MOST_ARGUMENTS; index++)
        arguments[index] = va_arg(list, uint64_t);
    va_end(list);
    call(probe, (int)leaves, result, arguments);
}

static struct tk_image this_image(void)
{
    return (struct tk_image){__start_tk_functions, __stop_tk_functions, __start_tk_globals, __stop_tk_globals};
}

static struct tk_code this_code(void)
{
    return (struct tk_code){__start_tk_activations, __stop_tk_activations,   __start_tk_sites,
                            __stop_tk_sites,        __start_tk_site_objects, __stop_tk_site_objects};
}

/* Before every other constructor and after every other destructor of the image. */
__attribute__((constructor(0))) static void register_image(void)
{
    const struct tk_api *api = find_api();
    struct tk_image image = this_image();
    if (__tk_registrations++ == 0 && api && (image.functions || image.globals))
        api->load(&image);
    struct tk_code code = this_code();
    if (__tk_registrations == 1 && api && api->level >= 3 && code.layouts)
        api->code(&image, &code);
}

__attribute__((destructor(0))) static void unregister_image(void)
{
    const struct tk_api *api = find_api();
    struct tk_image image = this_image();
    struct tk_code code = this_code();
    if (--__tk_registrations == 0 && api && (image.functions || image.globals)) {
        if (api->level >= 3 && code.layouts)
            api->code_leaves(&code);
        api->unload(&image);
    }
}
