/* Windows at record time (docs/internals/runtime.md, "Windows").
 *
 * Outside of windows a thread's state points to scratch memory, and its stream waits in `held`: only events with
 * tickets are written there. A window that opens or closes clears the limit of every thread; at its next check each
 * goes over by itself. Into a window it writes where its activations are, the outermost first. */
#include "preload_record.h"

#include <errno.h>
#include <signal.h>

/* What `tracekit start` and `stop` send with the signal, so that the program's own are not taken for them. */
enum { OPEN = 0x746b6f6e, CLOSE = 0x746b6f66 };

struct tk_windows tk_windows;

void tk_pause_process(void)
{
    tk_windows.paused = 1;
    tk_windows.began = tk_nanoseconds();
    tk_read_filter();
    tk_read_rules();
}

/* The thread's stream waits; at its first check it finds out whether a window is open. */
void tk_pause_thread(struct tk_thread *thread)
{
    if (!tk_windows.paused || !__tk_state.stream || thread->window)
        return;
    thread->held = __tk_state;
    tk_scratch();
    __tk_state.limit = NULL;
}

/* -- opening and closing ---------------------------------------------------------------------- */

/* What asks for a window now: a bit for each rule, and TK_RULES for calls and signals. */
static uint32_t askers(void)
{
    uint32_t others = __atomic_load_n(&tk_windows.calls, __ATOMIC_SEQ_CST) > 0 ||
                      __atomic_load_n(&tk_windows.signalled, __ATOMIC_SEQ_CST);
    return tk_open_rules() | others << TK_RULES;
}

/* Where windows have filters of their own, other functions are recorded than before: that is another window, for what
 * is under way in it differs. The caller holds tk_lock. */
static void change_window(void)
{
    uint32_t asking = askers();
    if (asking == tk_windows.asking)
        return;
    tk_choose(asking);
    __atomic_store_n(&tk_windows.asking, asking, __ATOMIC_SEQ_CST);
    uint32_t next = asking ? __atomic_add_fetch(&tk_windows.number, 1, __ATOMIC_SEQ_CST) : 0;
    __atomic_store_n(&tk_windows.current, next, __ATOMIC_SEQ_CST);
}

/* This very thread may hold the lock of the list of threads, if a signal interrupted it: then it does this when it lets
 * go. Another one that holds it, as to go over into a window, is waited for: what the program does until then would not
 * be recorded as the change asks. */
void tk_tell_threads(void)
{
    __atomic_store_n(&tk_windows.unheard, 1, __ATOMIC_SEQ_CST);
    if (!tk_lock_of_others())
        return;
    __atomic_store_n(&tk_windows.unheard, 0, __ATOMIC_SEQ_CST);
    if (tk_windows.differ)
        change_window();
    tk_arm();
    tk_clear_limits();
    tk_unlock();
}

/* Opens or closes the window if what asks for one has changed. */
void tk_settle_windows(void)
{
    uint32_t asking = askers();
    int open = asking != 0;
    uint32_t current = __atomic_load_n(&tk_windows.current, __ATOMIC_SEQ_CST);
    int steps =
        !tk_windows.may_step ? 0 : (tk_is_counting() ? TK_COUNTING : 0) | (tk_awaits_lines() ? TK_AWAITING_LINES : 0);
    int before = __atomic_exchange_n(&tk_windows.steps, steps, __ATOMIC_SEQ_CST);
    if (tk_windows.differ) {
        if (steps != before || asking != __atomic_load_n(&tk_windows.asking, __ATOMIC_SEQ_CST))
            tk_tell_threads();
        return;
    }
    if (open == (current != 0)) {
        if (steps != before)
            tk_tell_threads();
        return;
    }
    uint32_t next = open ? __atomic_add_fetch(&tk_windows.number, 1, __ATOMIC_SEQ_CST) : 0;
    if (__atomic_compare_exchange_n(&tk_windows.current, &current, next, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        tk_tell_threads();
}

/* tracekit.h. A close without an open means nothing. */
void tk_window_call(int open)
{
    if (!tk_windows.paused || !tk_pool)
        return;
    if (open)
        __atomic_add_fetch(&tk_windows.calls, 1, __ATOMIC_SEQ_CST);
    else if (__atomic_sub_fetch(&tk_windows.calls, 1, __ATOMIC_SEQ_CST) < 0)
        __atomic_add_fetch(&tk_windows.calls, 1, __ATOMIC_SEQ_CST);
    tk_settle_windows();
}

/* Whether a signal was sent to open or close a window, which it does; a plain one is if the program does not handle it
 * itself. */
int tk_is_window_signal(int signal, const void *information, int is_handled)
{
    const siginfo_t *info = information;
    if (is_handled)
        tk_signal_came(signal);
    if (!tk_windows.paused || signal != SIGUSR2 || !tk_pool)
        return 0;
    int code = info->si_code == SI_QUEUE ? info->si_value.sival_int : 0;
    if (code != OPEN && code != CLOSE) {
        if (is_handled)
            return 0;
        code = __atomic_load_n(&tk_windows.signalled, __ATOMIC_SEQ_CST) ? CLOSE : OPEN;
    }
    __atomic_store_n(&tk_windows.signalled, code == OPEN, __ATOMIC_SEQ_CST);
    tk_settle_windows();
    return 1;
}

/* -- a thread goes over ----------------------------------------------------------------------- */

static void open_window(struct tk_thread *thread, uint32_t number)
{
    __tk_state = thread->held;
    thread->held = (struct tk_state){0};
    thread->window = number;
    TK_RECORD3(window_begin, tk_ticket(), number, tk_nanoseconds() - tk_windows.began);
    thread->openings++;
    if (!thread->steps.opens) {
        tk_resume_all();
        return;
    }
    tk_resume_before(&thread->steps);
    tk_move_step(thread);
}

static void close_window(struct tk_thread *thread)
{
    uint32_t number = thread->window;
    TK_RECORD3(window_end, tk_ticket(), number, tk_nanoseconds() - tk_windows.began);
    thread->window = 0;
    if (__tk_state.stream)
        tk_pause_thread(thread);
}

static int follow(struct tk_thread *thread)
{
    uint32_t wanted = __atomic_load_n(&tk_windows.current, __ATOMIC_SEQ_CST);
    if (wanted && !tk_is_recorded_thread(thread->stream.number))
        wanted = 0;
    if (thread->mute.is_muted || thread->window == wanted)
        return 0; /* what it does is not recorded, or it is there */
    if (thread->window ? !__tk_state.stream : !thread->held.stream)
        return 0; /* it runs unrecorded */
    thread->crossing = 1;
    if (thread->window)
        close_window(thread);
    if (wanted && thread->held.stream)
        open_window(thread, wanted);
    thread->crossing = 0;
    return 1;
}

/* At a check, with signals blocked: go where the thread should be. Whether anything has changed. A handler runs to its
 * end as it began. */
int tk_follow_window(void)
{
    struct tk_thread *thread = tk_current;
    if (!tk_windows.paused || !tk_pool)
        return 0;
    tk_look_at_the_clock();
    if (!thread || thread->depth > 0 || thread->crossing)
        return 0;
    if (!tk_windows.differ)
        return follow(thread);
    if (!tk_lock_of_others()) { /* who holds it, maybe this thread, makes all come here again when it lets go */
        __atomic_store_n(&tk_windows.unheard, 1, __ATOMIC_SEQ_CST);
        if (!tk_lock_of_others())
            return 0;
    }
    tk_mute_anew(thread); /* what is open and what is recorded in it stay as they are meanwhile */
    int changed = follow(thread);
    tk_unlock();
    return changed;
}

/* -- events with tickets, outside of windows -------------------------------------------------- */

static void make_room(struct tk_thread *thread)
{
    uint64_t signals;
    tk_block_signals(&signals);
    struct tk_state scratch = __tk_state;
    __tk_state = thread->held;
    tk_hand_over();
    thread->held = __tk_state;
    __tk_state = scratch;
    tk_restore_signals(&signals);
}

void tk_note(enum tk_event event, int words, const uint64_t *values)
{
    struct tk_thread *thread = tk_current;
    int saved = errno;
    if (!tk_is_paused())
        return;
    if (thread->held.pos >= thread->held.limit)
        make_room(thread);
    errno = saved;
    if (!thread->held.stream)
        return;
    uint64_t *pos = thread->held.pos;
    for (int word = 0; word < words; word++)
        pos[1 + word] = values[word];
    __atomic_store_n(pos, (uint64_t)event, __ATOMIC_RELEASE);
    thread->held.pos = pos + 1 + words;
}
