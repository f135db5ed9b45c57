/* The images' code as windows need it: which body functions run, and which calls of clean bodies stand where. */
#include "preload.h"

/* What is known of an image; entries without layouts are free. Changed under tk_lock. */
static struct image_code {
    struct tk_code code;
    struct tk_place *places; /* sorted: calls, then objects */
    size_t count, objects;
} images[TK_MAX_IMAGES];

static uint32_t used; /* entries so far */

/* -- which body runs -------------------------------------------------------------------------- */

static void arm_image(const struct tk_code *code, int open)
{
    for (struct tk_activation_layout *layout = code->layouts; layout < code->layouts_end; layout++)
        if (layout->armed)
            __atomic_store_n(layout->armed, tk_is_armed(layout, open), __ATOMIC_RELAXED);
}

static int is_open(void)
{
    return tk_pool && (!tk_windows.paused || __atomic_load_n(&tk_windows.current, __ATOMIC_SEQ_CST));
}

/* Functions run the body that is right now. The caller holds tk_lock. */
void tk_arm(void)
{
    int open = is_open() || tk_windows.steps != 0;
    for (uint32_t number = 0; number < used; number++)
        arm_image(&images[number].code, open);
}

/* The caller holds tk_lock. */
void tk_each_code(void (*visit)(const struct tk_code *code))
{
    for (uint32_t number = 0; number < used; number++)
        visit(&images[number].code);
}

/* The function that has this path, or NULL. */
const struct tk_activation_layout *tk_find_layout(uint64_t path)
{
    const struct tk_activation_layout *found = NULL;
    for (uint32_t number = 0; number < used; number++)
        for (const struct tk_activation_layout *layout = images[number].code.layouts;
             layout < images[number].code.layouts_end; layout++)
            if ((uintptr_t)layout->ids <= path && (!found || layout->ids > found->ids))
                found = layout;
    return found;
}

/* -- calls ------------------------------------------------------------------------------------ */

/* Objects of one call in the order of their numbers, as their rows. */
static int is_before(const struct tk_place *one, const struct tk_place *other)
{
    return one->at != other->at ? one->at < other->at : one->object < other->object;
}

/* Puts the place at `root` where it belongs among the first `count`, a heap below it. */
static void sink(struct tk_place *places, size_t root, size_t count)
{
    struct tk_place moved = places[root];
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && is_before(&places[child], &places[child + 1]))
            child++;
        if (!is_before(&moved, &places[child]))
            break;
        places[root] = places[child];
    }
    places[root] = moved;
}

/* The C library's sort allocates. */
static void sort(struct tk_place *places, size_t count)
{
    for (size_t root = count / 2; root-- > 0;)
        sink(places, root, count);
    for (size_t last = count; last-- > 1;) {
        struct tk_place greatest = places[0];
        places[0] = places[last];
        places[last] = greatest;
        sink(places, 0, last);
    }
}

static void list_places(struct image_code *image)
{
    const struct tk_code *code = &image->code;
    size_t sites = (size_t)(code->sites_end - code->sites), objects = (size_t)(code->objects_end - code->objects);
    size_t bytes = (sites + objects) * sizeof(struct tk_place);
    struct tk_place *places = bytes ? tk_mmap(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1) : NULL;
    if (!places)
        return;
    for (size_t number = 0; number < sites; number++) {
        const struct tk_site *site = &code->sites[number];
        uint64_t path = site->path ? (uint64_t)((uintptr_t)&site->path + (uintptr_t)(intptr_t)site->path) : 0;
        places[number] = (struct tk_place){(uintptr_t)&site->at + (uintptr_t)(intptr_t)site->at, path, NULL};
    }
    for (size_t number = 0; number < objects; number++) {
        const struct tk_site_object *object = &code->objects[number];
        places[sites + number] = (struct tk_place){(uintptr_t)&object->at + (uintptr_t)(intptr_t)object->at, 0, object};
    }
    sort(places, sites);
    sort(places + sites, objects);
    image->places = places;
    image->objects = objects;
    __atomic_store_n(&image->count, sites, __ATOMIC_RELEASE);
}

/* How many of the places stand before `at`. */
static size_t before(const struct tk_place *places, size_t count, uintptr_t at)
{
    size_t first = 0;
    for (size_t end = count; first < end;) {
        size_t middle = first + (end - first) / 2;
        if (places[middle].at < at)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* The last call that is marked between `low` and `at`, or NULL, and the stack objects during it. */
const struct tk_place *tk_find_place(uintptr_t low, uintptr_t at, const struct tk_place **objects, size_t *count)
{
    for (uint32_t number = 0; number < used; number++) {
        const struct image_code *image = &images[number];
        size_t calls = __atomic_load_n(&image->count, __ATOMIC_ACQUIRE);
        size_t found = calls ? before(image->places, calls, at) : 0;
        if (!found || image->places[found - 1].at < low)
            continue;
        const struct tk_place *call = &image->places[found - 1], *all = image->places + calls;
        size_t first = before(all, image->objects, call->at);
        *objects = all + first;
        *count = before(all, image->objects, call->at + 1) - first;
        return call;
    }
    return NULL;
}

/* -- images come and go ----------------------------------------------------------------------- */

/* An image is there, behind its registration. */
void tk_enter_code(const struct tk_image *image, const struct tk_code *code)
{
    uint32_t number = 0;
    if (!tk_pool)
        return;
    tk_watch_layouts(image, code);
    tk_lock();
    if (tk_windows.paused)
        tk_filter_layouts(image, code);
    while (number < used && images[number].code.layouts)
        number++;
    if (number < TK_MAX_IMAGES) {
        struct image_code *entry = &images[number];
        entry->code = *code;
        if (tk_windows.paused)
            list_places(entry);
        used = number == used ? number + 1 : used;
        arm_image(code, is_open() || tk_windows.steps != 0);
    }
    tk_unlock();
}

void tk_leave_code(const struct tk_code *code)
{
    tk_lock();
    for (uint32_t number = 0; number < used; number++) {
        struct image_code *entry = &images[number];
        if (!code->layouts || entry->code.layouts != code->layouts)
            continue;
        tk_unfilter_layouts(code);
        if (entry->places)
            tk_munmap(entry->places, (entry->count + entry->objects) * sizeof(struct tk_place));
        *entry = (struct image_code){0};
    }
    tk_unlock();
}
