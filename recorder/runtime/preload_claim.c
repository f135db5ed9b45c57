/* Claiming the pool: the first process that registers an instrumented image gets it, all others stay untouched. */
#include "preload_record.h"

#include <errno.h>
#include <unistd.h>

/* The pool is inherited, or with --follow-fork asked for. */
static int find_pool(struct tk_layout *layout)
{
    tk_join_session();
    int found = 0, fd = tk_following() ? tk_connect() : tk_inherited_pool();
    if (fd >= 0 && tk_following()) {
        const struct tk_request request = {TK_START_PROGRAM, (uint64_t)getppid(), 0};
        found = tk_request_pool(fd, &request, layout);
        syscall(SYS_close, fd);
    } else if (fd >= 0 && tk_map_pool(fd, layout)) {
        found = 1;
        syscall(SYS_close, fd);
        tk_hide_session();
    }
    return found;
}

static void claim_pool(void)
{
    static int tried;
    struct tk_layout layout;
    if (tried++ || !find_pool(&layout))
        return;
#ifndef TK_STATIC
    tk_find_linker();
#endif
    tk_use_pool(&layout);
    if (layout.pool->windows)
        tk_pause_process();
    tk_watch_forks();
    tk_watch_mappings();
    tk_watch_process();
    tk_watch_threads();
    tk_begin_thread(tk_new_thread(getpid() == gettid() ? 0 : TK_NO_STREAM));
    if (tk_windows.paused)
        tk_start_clock();
    tk_wrap_handlers();
    if (tk_noting())
        TK_RECORD2(program_start, tk_ticket(), (uint64_t)getpid());
}

void tk_load(const struct tk_image *image)
{
    int saved = errno;
    tk_lock();
    claim_pool();
    tk_unlock();
    if (tk_pool)
        tk_publish_image(image);
    errno = saved;
}

void tk_unload(const struct tk_image *image)
{
    int saved = errno;
    if (tk_pool)
        tk_retire_image(image);
    errno = saved;
}

/* What the wrappers of MPI's functions record (runtime/mpi), with a ticket in front where the event has one. */
void __tk_mpi_event(enum tk_event event, uint64_t a, uint64_t b, uint64_t c);

TK_EXPORT void __tk_mpi_event(enum tk_event event, uint64_t a, uint64_t b, uint64_t c)
{
    if (event == TK_EVENT_library_load || event == TK_EVENT_library_store) {
        if (tk_recording())
            tk_record(event, 2, a, b, 0, 0);
    } else if (tk_noting())
        tk_record(event, TK_EVENT_WORDS[event], tk_ticket(), a, b, c);
}

TK_EXPORT const struct tk_api __tk_api = {TK_API_VERSION, TK_API_LEVEL,   tk_flip,         tk_landing,
                                          tk_load,        tk_unload,      tk_atomic_begin, tk_atomic_end,
                                          tk_fence,       tk_window_call, tk_watched,      tk_enter_code,
                                          tk_leave_code,  tk_resumed,     tk_allocating,   tk_allocated};
