/* What a static program has instead of a preloaded library: every file of that library, linked in, and this one.
 *
 * The linker's --wrap turns calls of malloc into calls of __wrap_malloc, which is the library's malloc under another
 * name (recorder/toolchain.py), and leaves the C library's as __real_malloc. */
#include "preload.h"

/* `record` asks for this section before it hands over a pool. */
__attribute__((section("tk_static"), used, retain)) static const char mark[] = "tracekit";

__thread int tk_within_library;

/* libgcc's, when the program begins and ends; it takes a lock, and is not there if nothing needs it. */
void __wrap___register_frame_info(const void *begin, void *object);
void __real___register_frame_info(const void *begin, void *object) __attribute__((weak));
void *__wrap___deregister_frame_info(const void *begin);
void *__real___deregister_frame_info(const void *begin) __attribute__((weak));

void __wrap___register_frame_info(const void *begin, void *object)
{
    tk_within_library++;
    if (__real___register_frame_info)
        __real___register_frame_info(begin, object);
    tk_within_library--;
}

void *__wrap___deregister_frame_info(const void *begin)
{
    tk_within_library++;
    void *object = __real___deregister_frame_info ? __real___deregister_frame_info(begin) : NULL;
    tk_within_library--;
    return object;
}
