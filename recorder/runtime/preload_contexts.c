/* What is under way in a thread that goes into a window (docs/internals/runtime.md, "Windows").
 *
 * Instrumented bodies keep their activations in a list. Clean bodies keep nothing: the unwinder finds their frames, and
 * the calls in them are known by place. */
#include "preload_record.h"

#include <unwind.h>

/* An activation, by its list's entry or as a clean frame; or a stack object of a clean frame, which comes first. */
struct context {
    const struct tk_activation *activation; /* NULL: a clean one */
    const struct tk_site_object *object;    /* NULL: it is none */
    uint64_t path;
    uintptr_t address; /* canonical, of a clean frame; of the object */
    uint64_t size;     /* of the object */
};

struct walk {
    const struct tk_activation *at, *above, *stop; /* the list, as far as it has been followed; where it ends */
    struct context *contexts;                      /* innermost first; NULL: they are only counted */
    size_t count, room;
    int is_pending; /* the newest one's frame address is to come */
};

/* Whether there is an activation at this place, still: exceptions that only code without instrumentation catches leave
 * what they passed over in the list. Stacks grow down. */
static int is_alive(const struct tk_activation *at, const struct tk_activation *above)
{
    return at > above && at->self == at;
}

static void add(struct walk *walk, struct context context)
{
    if (walk->contexts && walk->count < walk->room)
        walk->contexts[walk->count] = context;
    walk->count++;
}

/* The activations of the list that lie below `end` on the stack. */
static void follow_list(struct walk *walk, uintptr_t end)
{
    while (walk->at && walk->at != walk->stop && (uintptr_t)walk->at < end) {
        if (!is_alive(walk->at, walk->above)) {
            walk->at = NULL;
            return;
        }
        if (!tk_is_excluded(walk->at->layout))
            add(walk, (struct context){walk->at, NULL, 0, 0, 0});
        walk->above = walk->at;
        walk->at = walk->at->below;
    }
}

/* What `lea DISPLACEMENT(REGISTER), %rax` would compute in the frame. */
static uintptr_t address_of(struct _Unwind_Context *frame, const uint8_t *code)
{
    static const uint8_t numbers[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}; /* in DWARF */
    int encoded = (code[2] & 7) | (code[0] & 1) << 3, mode = code[2] >> 6;
    const uint8_t *displacement = code + 3 + ((encoded & 7) == 4); /* behind a SIB byte */
    int32_t wide = 0;
    if (mode == 1)
        wide = (int8_t)*displacement;
    else if (mode == 2)
        wide = (int32_t)((uint32_t)displacement[0] | (uint32_t)displacement[1] << 8 | (uint32_t)displacement[2] << 16 |
                         (uint32_t)displacement[3] << 24);
    uintptr_t base = encoded == 4 ? _Unwind_GetCFA(frame) : _Unwind_GetGR(frame, numbers[encoded]);
    return base + (uintptr_t)(intptr_t)wide;
}

/* One frame, from the innermost on. The address that the unwinder gives is that of its inner end. */
static _Unwind_Reason_Code visit(struct _Unwind_Context *frame, void *argument)
{
    struct walk *walk = argument;
    uintptr_t low = _Unwind_GetCFA(frame), at = _Unwind_GetIP(frame);
    if (walk->is_pending && walk->contexts && walk->count <= walk->room)
        walk->contexts[walk->count - 1].address = low;
    walk->is_pending = 0;
    follow_list(walk, low);
    if (walk->stop && walk->at == walk->stop && low > (uintptr_t)walk->stop)
        return _URC_NORMAL_STOP;
    const struct tk_place *objects, *call;
    size_t count;
    call = tk_find_place(_Unwind_GetRegionStart(frame), at, &objects, &count);
    if (!call || !call->path || (tk_pool->filters && tk_is_excluded(tk_find_layout(call->path))))
        return _URC_NO_REASON;
    for (size_t number = count; number-- > 0;) {
        const struct tk_site_object *object = objects[number].object;
        uintptr_t address = address_of(frame, object->address);
        const uint64_t *note = (const uint64_t *)address;
        add(walk, object->size ? (struct context){NULL, object, 0, address, object->size}
                               : (struct context){NULL, object, 0, note[0], note[1]});
    }
    add(walk, (struct context){NULL, NULL, call->path, 0, 0});
    walk->is_pending = 1;
    return _URC_NO_REASON;
}

/* The unwinder's own calls of the C library are no events. */
static void unwind(_Unwind_Trace_Fn each, void *argument)
{
    struct tk_thread *thread = tk_current;
    struct tk_state state = __tk_state;
    int crossing = thread->crossing;
    thread->crossing = 1;
    tk_scratch();
    _Unwind_Backtrace(each, argument);
    if (!__tk_state.limit) /* somebody wants the thread to look around */
        state.limit = NULL;
    __tk_state = state;
    thread->crossing = crossing;
}

/* `first` is the innermost activation that counts. */
static size_t walk_stack(struct context *contexts, size_t room, const struct tk_activation *first,
                         const struct tk_activation *stop)
{
    const struct tk_activation *here = __builtin_frame_address(0);
    struct walk walk = {first, here, stop, contexts, 0, room, 0};
    unwind(visit, &walk);
    follow_list(&walk, UINTPTR_MAX);
    return walk.count;
}

/* -- in the trace ----------------------------------------------------------------------------- */

static void write_path(uint64_t path)
{
    if (TK_UNLIKELY(__tk_state.pos >= __tk_state.limit))
        tk_flip();
    uint64_t *pos = __tk_state.pos;
    __atomic_store_n(pos, path, __ATOMIC_RELEASE);
    __tk_state.pos = pos + 1;
}

static uint64_t path_of(const struct tk_activation *at)
{
    return (uint64_t)(uintptr_t)at->layout->ids + at->path;
}

static void fill_in(const struct tk_activation *at, int objects)
{
    const struct tk_activation_layout *layout = at->layout;
    const uint64_t *word = at->words;
    if (at->frame)
        TK_RECORD1(resumed_frame, at->frame);
    for (uint32_t number = 0; number < layout->registers; number++)
        TK_RECORD2(resumed_register, number, *word++);
    for (uint32_t loop = 0; loop < layout->loops; loop++)
        TK_RECORD2(resumed_loop, layout->numbers[loop], *word++);
    for (uint32_t number = 0; objects && number < layout->objects; number++, word += 2)
        if (word[1])
            TK_RECORD3(resumed_object, number, word[0], word[1]);
}

/* Writes the activations under way, from `first` on, the outermost first, as far as `stop`, which the trace knows. What
 * is known of `replaced` is what it was before. */
static void resume_until(const struct tk_activation *first, const struct tk_activation *stop,
                         const struct tk_activation *replaced, const struct tk_activation *copy)
{
    size_t room = walk_stack(NULL, 0, first, stop) + 8; /* this frame may count, too */
    struct context *contexts = tk_mmap(room * sizeof *contexts, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!contexts)
        return;
    size_t count = walk_stack(contexts, room, first, stop);
    for (size_t number = count < room ? count : room; number-- > 0;) {
        const struct context *context = &contexts[number];
        if (context->object) {
            TK_RECORD3(resumed_object, context->object->number, context->address, context->size);
            continue;
        }
        const struct tk_activation *at = context->activation;
        if (at && at == replaced)
            at = copy;
        write_path(at ? path_of(at) : context->path);
        if (at)
            fill_in(at, 1);
        else
            TK_RECORD1(resumed_frame, context->address);
    }
    tk_munmap(contexts, room * sizeof *contexts);
}

void tk_resume_all(void)
{
    resume_until(__tk_activations, NULL, NULL, NULL);
}

/* As it was before the thread's last records: since then an activation has gone on, begun or ended. */
void tk_resume_before(const struct tk_steps *steps)
{
    const struct tk_activation *now = __tk_activations, *then = steps->top;
    int has_begun = now && now != then && now->self == now && now->below == then;
    int has_ended = then && now != then && !has_begun && steps->is_kept && steps->copy->below == now;
    resume_until(has_begun ? then : now, NULL, steps->is_kept ? then : NULL, steps->copy);
    if (has_ended) {
        write_path(path_of(steps->copy));
        fill_in(steps->copy, 1);
    }
}

struct search {
    uintptr_t inside, found;
};

static _Unwind_Reason_Code look(struct _Unwind_Context *frame, void *argument)
{
    struct search *search = argument;
    uintptr_t low = _Unwind_GetCFA(frame);
    if (low <= search->inside)
        return _URC_NO_REASON;
    search->found = low;
    return _URC_NORMAL_STOP;
}

/* Control has come back to a clean frame, in which `lives` lies, and has left it for the instrumented body. If the
 * thread was in the window before, the trace knows the frame by its address; if `lives` is NULL, by that of its FRAME
 * operation, with which what comes next begins. */
void tk_resumed(struct tk_activation *activation, const void *lives)
{
    struct tk_thread *thread = tk_current;
    if (!tk_pool || !tk_windows.paused || !thread)
        return;
    uint32_t openings = thread->openings;
    tk_mute(activation->layout, activation, 1);
    if (thread->depth == 0 && tk_is_behind(thread))
        tk_await_lock(); /* who holds it has told the functions already, and not yet the threads */
    if (__tk_state.pos >= __tk_state.limit)
        tk_flip();
    if (!lives || !__tk_state.stream || thread->openings != openings)
        return;
    if (thread->depth > 0) {
        resume_until(__tk_activations, activation->below, NULL,
                     NULL); /* a handler's run began in a window, and saw another one open */
        return;
    }
    struct search search = {(uintptr_t)lives, 0};
    unwind(look, &search);
    TK_RECORD1(resumed_return, search.found);
    fill_in(activation, 0);
}
