/* Another OMPT tool beside the recorder: OpenMP's runtime knows one tool only, so what it says is handed on (as LLVM's
 * ompt-multiplex does). Each team and task keeps a pair: our number, and what the other tool wants to keep. */
#include "preload.h"

#include "ompt.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

int tk_is_another_tool;
ompt_function_t tk_their_callbacks[OMPT_EVENTS];

static ompt_start_tool_result_t *other;
static ompt_lookup_t real_lookup;
static const uint8_t *our_events;

typedef ompt_start_tool_result_t *(*start_tool)(unsigned version, const char *runtime);

/* In one of the libraries that a user or the runtime would have loaded if we were not there. */
static ompt_start_tool_result_t *start_in_library(const char *path, unsigned version, const char *runtime)
{
    void *library = dlopen(path, RTLD_LAZY);
    start_tool start = library ? (start_tool)dlsym(library, "ompt_start_tool") : NULL;
    return start ? start(version, runtime) : NULL;
}

static ompt_start_tool_result_t *find_other(unsigned version, const char *runtime)
{
    start_tool next = (start_tool)dlsym(RTLD_NEXT, "ompt_start_tool");
    ompt_start_tool_result_t *found = next ? next(version, runtime) : NULL;
    const char *names = getenv("OMP_TOOL_LIBRARIES");
    while (!found && names && *names) {
        char path[4096];
        size_t length = strcspn(names, ":");
        if (length > 0 && length < sizeof path) {
            memcpy(path, names, length);
            path[length] = '\0';
            found = start_in_library(path, version, runtime);
        }
        names += length + (names[length] == ':');
    }
    if (!found && dlsym(RTLD_DEFAULT, "__tsan_init"))
        found = start_in_library("libarcher.so", version, runtime);
    return found;
}

ompt_start_tool_result_t *tk_start_other_tool(unsigned version, const char *runtime)
{
    other = find_other(version, runtime);
    tk_is_another_tool = other != NULL;
    return other;
}

void tk_number_data(ompt_data_t *data, uint64_t number)
{
    if (!data)
        return;
    if (!tk_is_another_tool) {
        data->value = number;
        return;
    }
    struct tk_pair *pair = malloc(sizeof *pair);
    if (pair)
        *pair = (struct tk_pair){number, {0}};
    data->ptr = pair;
}

/* -- what the other tool asks the runtime for ------------------------------------------------- */

static int set_callback(int event, ompt_function_t callback)
{
    if (event <= 0 || event >= OMPT_EVENTS)
        return 0;
    if (!our_events[event])
        return (event >= OMPT_TARGET && event < OMPT_TARGET + 3) || event == 22 || event >= OMPT_TARGET_EMI
                   ? 1 /* never: they would show it our data */
                   : ((ompt_set_callback_t)real_lookup("ompt_set_callback"))(event, callback);
    tk_their_callbacks[event] = callback;
    return our_events[event];
}

static int get_callback(int event, ompt_function_t *callback)
{
    if (event <= 0 || event >= OMPT_EVENTS)
        return 0;
    if (!our_events[event])
        return ((ompt_get_callback_t)real_lookup("ompt_get_callback"))(event, callback);
    *callback = tk_their_callbacks[event];
    return *callback != NULL;
}

static int get_parallel_info(int level, ompt_data_t **parallel, int *size)
{
    int result = ((ompt_get_parallel_info_t)real_lookup("ompt_get_parallel_info"))(level, parallel, size);
    if (result == 2 && parallel)
        *parallel = tk_theirs(*parallel);
    return result;
}

static int get_task_info(int level, int *flags, ompt_data_t **task, void **frame, ompt_data_t **parallel, int *thread)
{
    int result = ((ompt_get_task_info_t)real_lookup("ompt_get_task_info"))(level, flags, task, frame, parallel, thread);
    if (result == 2 && task)
        *task = tk_theirs(*task);
    if (result == 2 && parallel)
        *parallel = tk_theirs(*parallel);
    return result;
}

static ompt_function_t lookup(const char *name)
{
    if (strcmp(name, "ompt_set_callback") == 0)
        return (ompt_function_t)set_callback;
    if (strcmp(name, "ompt_get_callback") == 0)
        return (ompt_function_t)get_callback;
    if (strcmp(name, "ompt_get_parallel_info") == 0)
        return (ompt_function_t)get_parallel_info;
    if (strcmp(name, "ompt_get_task_info") == 0)
        return (ompt_function_t)get_task_info;
    return real_lookup(name);
}

/* `ours`: of each event, what the runtime answered when we set our callback; 0: we have none. */
void tk_initialize_other_tool(ompt_lookup_t runtime_lookup, int device, const uint8_t *ours)
{
    real_lookup = runtime_lookup;
    our_events = ours;
    if (other && !other->initialize(lookup, device, &other->data))
        memset(tk_their_callbacks, 0, sizeof tk_their_callbacks);
}

void tk_finalize_other_tool(void)
{
    if (other && other->finalize)
        other->finalize(&other->data);
}
