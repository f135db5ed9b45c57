/* Signal handlers run on streams of their own: sigaction and its relatives install a trampoline in the kernel,
 * and give back to the program what it had set. */
#include "preload_record.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define SIGNALS 65

typedef void (*handler_function)(int, siginfo_t *, void *);

static handler_function handlers[SIGNALS]; /* the program's own */

static void trampoline(int signal, siginfo_t *info, void *context);

static int is_function(void *handler)
{
    return handler != (void *)SIG_DFL && handler != (void *)SIG_IGN && handler != (void *)SIG_ERR &&
           handler != (void *)SIG_HOLD;
}

static void note_stack(struct tk_handler *handler)
{
    stack_t stack;
    handler->stack = (uintptr_t)__builtin_frame_address(0);
    handler->low = handler->high = 0;
    if (TK_REAL(sigaltstack)(NULL, &stack) == 0 && (stack.ss_flags & SS_ONSTACK)) {
        handler->low = (uintptr_t)stack.ss_sp;
        handler->high = handler->low + stack.ss_size;
    }
}

static struct tk_handler *enter(struct tk_thread *thread, int signal)
{
    int saved = errno;
    uint64_t signals;
    tk_block_signals(&signals);
    struct tk_handler *handler = &thread->handlers[thread->depth++];
    note_stack(handler);
    handler->signal = signal;
    handler->interrupted = __tk_state;
    handler->below = __tk_activations;
    __tk_activations = NULL;
    handler->silent = tk_windows.paused && !__tk_state.stream;
    if (handler->silent) {
        tk_scratch();
    } else if (handler->own.stream) {
        tk_resume(&handler->own);
    } else {
        handler->stream.thread = thread->stream.number;
        tk_open_stream(&handler->stream);
    }
    if (tk_recording())
        TK_RECORD1(signal_enter, (uint64_t)signal);
    tk_restore_signals(&signals);
    errno = saved;
    return handler;
}

static void leave(struct tk_thread *thread, struct tk_handler *handler, int abnormal)
{
    int saved = errno;
    uint64_t signals;
    tk_block_signals(&signals);
    if (tk_recording())
        TK_RECORD2(signal_leave, (uint64_t)handler->signal, (uint64_t)abnormal);
    if (!handler->silent)
        handler->own = __tk_state;
    thread->depth--;
    tk_resume(&handler->interrupted);
    __tk_activations = handler->below;
    tk_restore_signals(&signals);
    errno = saved;
}

static void trampoline(int signal, siginfo_t *info, void *context)
{
    handler_function handler = handlers[signal];
    struct tk_pool *pool = tk_pool;
    if (tk_is_window_signal(signal, info, handler != NULL) || !handler)
        return;
    if (pool && !tk_current)
        tk_flip(); /* the thread's first sign of life: number its own stream */
    struct tk_thread *thread = tk_current;
    if (!pool || !thread || thread->depth >= TK_HANDLER_LEVELS || !thread->state) {
        struct tk_state state = __tk_state;
        struct tk_activation *below = __tk_activations;
        __tk_activations = NULL;
        if (pool) {
            tk_count_unrecorded();
            tk_scratch();
        }
        handler(signal, info, context);
        tk_resume(&state);
        __tk_activations = below;
        return;
    }
    struct tk_handler *level = enter(thread, signal);
    handler(signal, info, context);
    leave(thread, level, 0);
}

/* Whether the handler's frame was unwound, now that control is in a function whose frame is at `landed`. */
static int was_left(const struct tk_handler *handler, uintptr_t landed)
{
    if (handler->high && (landed < handler->low || landed >= handler->high))
        return 1;
    return landed > handler->stack;
}

/* The buffer must be zero behind the position. */
static void clear_open_record(void)
{
    if (!tk_pool || !tk_recording())
        return;
    uint64_t *end = tk_buffer_words(&tk_layout, __tk_state.buffer) + tk_layout.buffer_words;
    size_t words = (size_t)(end - __tk_state.pos);
    memset(__tk_state.pos, 0, (words < TK_SLACK ? words : TK_SLACK) * sizeof(uint64_t));
}

/* Control came back by unwinding (or setjmp returned): leave the handlers that it passed over. What they interrupted
 * may have been an open record, which is dropped. */
void tk_landing(void *frame)
{
    struct tk_thread *thread = tk_current;
    int dropped = 0;
    if (!thread || !tk_pool)
        return;
    tk_unmute_landing((const char *)__builtin_frame_address(0) + 16);
    while (thread->depth > 0 && was_left(&thread->handlers[thread->depth - 1], (uintptr_t)frame)) {
        leave(thread, &thread->handlers[thread->depth - 1], 1);
        dropped = 1;
        clear_open_record();
    }
    if (thread->depth == 0)
        tk_leave_allocator(frame);
    if (dropped && tk_recording())
        TK_RECORD0(dropped);
}

/* SIGUSR2 opens and closes windows; SA_RESTART, so that the program's system calls do not notice. */
static int ask_for_window_signal(struct sigaction *old, handler_function previous)
{
    struct sigaction ours = {.sa_sigaction = trampoline, .sa_flags = SA_SIGINFO | SA_RESTART};
    int result = TK_REAL(sigaction)(SIGUSR2, &ours, old);
    if (result == 0 && old && old->sa_sigaction == trampoline)
        old->sa_sigaction = previous;
    return result;
}

static int set_action(int signal, const struct sigaction *action, struct sigaction *old)
{
    struct sigaction ours, before;
    handler_function previous = handlers[signal];
    if (action && is_function((void *)action->sa_sigaction)) {
        ours = *action;
        handlers[signal] = action->sa_sigaction;
        ours.sa_sigaction = trampoline;
        if (signal == SIGUSR2 && tk_windows.paused)
            ours.sa_flags |= SA_SIGINFO; /* that tells whose signal it is */
        action = &ours;
    } else if (action && signal == SIGUSR2 && tk_windows.paused) {
        handlers[signal] = NULL; /* it goes on opening windows */
        return ask_for_window_signal(old, previous);
    }
    int result = TK_REAL(sigaction)(signal, action, &before);
    if (result != 0) {
        handlers[signal] = previous;
        return result;
    }
    if (before.sa_sigaction == trampoline)
        before.sa_sigaction = previous;
    if (old)
        *old = before;
    return 0;
}

/* The C library's own calls are about what is in the kernel. */
TK_EXPORT int sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    if (!tk_pool || signal <= 0 || signal >= SIGNALS || !TK_BY_PROGRAM())
        return TK_REAL(sigaction)(signal, action, old);
    if (action && TK_IS_RECORDED())
        tk_library_load(action, sizeof *action);
    int result = set_action(signal, action, old);
    if (result == 0 && old && TK_IS_RECORDED())
        tk_library_store(old, sizeof *old);
    return result;
}

/* signal() and its historical variants differ in flags that only the C library knows; each is wrapped by itself. */
#define WRAP_SIGNAL(name) \
    sighandler_t name(int number, sighandler_t handler); \
    TK_EXPORT sighandler_t name(int number, sighandler_t handler) \
    { \
        if (!tk_pool || number <= 0 || number >= SIGNALS) \
            return TK_REAL(name)(number, handler); \
        handler_function previous = handlers[number]; \
        if (number == SIGUSR2 && tk_windows.paused && !is_function((void *)handler)) { \
            handlers[number] = NULL; \
            return (sighandler_t)(void *)previous; \
        } \
        int wrap = is_function((void *)handler); \
        if (wrap) \
            handlers[number] = (handler_function)(void *)handler; \
        struct sigaction again; \
        sighandler_t before = TK_REAL(name)(number, wrap ? (sighandler_t)(void *)trampoline : handler); \
        if (before == SIG_ERR) \
            handlers[number] = previous; \
        else if (number == SIGUSR2 && tk_windows.paused && TK_REAL(sigaction)(number, NULL, &again) == 0) { \
            again.sa_flags |= SA_SIGINFO; \
            TK_REAL(sigaction)(number, &again, NULL); \
        } \
        return before == (sighandler_t)(void *)trampoline ? (sighandler_t)(void *)previous : before; \
    }

WRAP_SIGNAL(signal)
WRAP_SIGNAL(bsd_signal)
WRAP_SIGNAL(sysv_signal)
WRAP_SIGNAL(__sysv_signal)
WRAP_SIGNAL(ssignal)
WRAP_SIGNAL(sigset)

/* Handlers that were set before the pool was claimed. */
void tk_wrap_handlers(void)
{
    struct sigaction action;
    for (int signal = 1; signal < SIGNALS; signal++)
        if (TK_REAL(sigaction)(signal, NULL, &action) == 0 && is_function((void *)action.sa_sigaction))
            set_action(signal, &action, NULL);
    if (tk_windows.paused && !handlers[SIGUSR2])
        ask_for_window_signal(NULL, NULL);
}
