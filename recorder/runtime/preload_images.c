/* Registration of images: their tables are copied into the pool, where they outlive the program. */
#include "preload_record.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Open addressing: unit -> its number in the image. */
struct unit_map {
    const void **units;
    uint32_t *numbers;
    size_t slots, bytes;
    uint32_t count;
};

static int open_map(struct unit_map *map, size_t rows)
{
    map->slots = 64;
    while (map->slots < 2 * rows)
        map->slots *= 2;
    map->bytes = map->slots * (sizeof(void *) + sizeof(uint32_t));
    map->units = tk_mmap(map->bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!map->units)
        return 0;
    map->numbers = (uint32_t *)(map->units + map->slots);
    map->count = 0;
    return 1;
}

static uint32_t unit_number(struct unit_map *map, const void *unit)
{
    size_t slot = ((uintptr_t)unit >> 3) * 0x9e3779b97f4a7c15u & (map->slots - 1);
    while (map->units[slot] && map->units[slot] != unit)
        slot = (slot + 1) & (map->slots - 1);
    if (!map->units[slot]) {
        map->units[slot] = unit;
        map->numbers[slot] = map->count++;
    }
    return map->numbers[slot];
}

/* Room in the image area; 0 if there is none. */
static uint64_t allocate(struct tk_pool *pool, uint64_t bytes)
{
    uint64_t offset = (pool->area_used + 15) & ~(uint64_t)15;
    if (offset > tk_layout.area_bytes || bytes > tk_layout.area_bytes - offset)
        return 0;
    pool->area_used = offset + bytes;
    return tk_layout.area_offset + offset;
}

static int copy_functions(struct tk_pool *pool, struct tk_pool_image *entry, const struct tk_image *image,
                          struct unit_map *map)
{
    uint64_t low = UINT64_MAX, high = 0;
    for (const struct tk_function *row = image->functions; row < image->functions_end; row++) {
        uint64_t first = (uintptr_t)row->ids;
        low = first < low ? first : low;
        high = first + row->paths > high ? first + row->paths : high;
    }
    entry->function_rows = (uint32_t)(image->functions_end - image->functions);
    entry->low = high ? low : 0;
    entry->span = high - entry->low;
    entry->functions = allocate(pool, entry->function_rows * sizeof(struct tk_pool_function));
    if (!entry->functions)
        return 0;
    struct tk_pool_function *to = (void *)((char *)pool + entry->functions);
    for (const struct tk_function *row = image->functions; row < image->functions_end; row++)
        *to++ = (struct tk_pool_function){(uintptr_t)row->ids - low, unit_number(map, row->unit), row->function,
                                          row->paths, 0};
    return 1;
}

static int copy_globals(struct tk_pool *pool, struct tk_pool_image *entry, const struct tk_image *image,
                        struct unit_map *map)
{
    entry->global_rows = (uint32_t)(image->globals_end - image->globals);
    entry->globals = allocate(pool, entry->global_rows * sizeof(struct tk_pool_global));
    if (!entry->globals)
        return 0;
    struct tk_pool_global *to = (void *)((char *)pool + entry->globals);
    for (const struct tk_global *row = image->globals; row < image->globals_end; row++)
        *to++ = (struct tk_pool_global){(uintptr_t)row->address, unit_number(map, row->unit), row->global};
    return 1;
}

static int copy_units(struct tk_pool *pool, struct tk_pool_image *entry, const struct unit_map *map)
{
    entry->unit_rows = map->count;
    entry->units = allocate(pool, entry->unit_rows * sizeof(struct tk_pool_unit));
    if (!entry->units)
        return 0;
    struct tk_pool_unit *rows = (void *)((char *)pool + entry->units);
    for (size_t slot = 0; slot < map->slots; slot++) {
        const struct tk_unit *unit = map->units[slot];
        if (!unit)
            continue;
        uint64_t offset = allocate(pool, unit->bytes);
        if (!offset)
            return 0;
        memcpy((char *)pool + offset, unit, unit->bytes);
        rows[map->numbers[slot]] = (struct tk_pool_unit){offset, unit->bytes};
    }
    return 1;
}

static uintptr_t identity(const struct tk_image *image)
{
    return image->functions ? (uintptr_t)image->functions : (uintptr_t)image->globals;
}

/* The image's file name without its directory; the main program has no name of its own. */
const char *tk_image_name(const struct tk_image *image)
{
#ifdef TK_STATIC
    (void)image;
    const char *name = program_invocation_name;
#else
    Dl_info info;
    const char *name = dladdr((void *)identity(image), &info) && info.dli_fname ? info.dli_fname : "";
#endif
    const char *last = name; /* by hand: the interposed string functions would record this */
    for (; *name; name++)
        if (*name == '/')
            last = name + 1;
    return last;
}

static int copy_name(struct tk_pool *pool, struct tk_pool_image *entry, const struct tk_image *image)
{
    const char *name = tk_image_name(image);
    size_t length = 0;
    while (name[length])
        length++;
    entry->name_bytes = (uint32_t)length;
    entry->name = allocate(pool, entry->name_bytes);
    if (!entry->name)
        return 0;
    memcpy((char *)pool + entry->name, name, entry->name_bytes);
    return 1;
}

static int copy_image(struct tk_pool *pool, struct tk_pool_image *entry, const struct tk_image *image)
{
    struct unit_map map;
    size_t rows = (size_t)(image->functions_end - image->functions) + (size_t)(image->globals_end - image->globals);
    if (!open_map(&map, rows))
        return 0;
    entry->identity = identity(image);
    int done = copy_functions(pool, entry, image, &map) && copy_globals(pool, entry, image, &map) &&
               copy_units(pool, entry, &map) && copy_name(pool, entry, image);
    tk_munmap(map.units, map.bytes);
    return done;
}

/* Copy an image's tables into the pool. Its number, or TK_MAX_IMAGES if there is no room. The caller holds tk_lock. */
static uint32_t add_image(struct tk_pool *pool, const struct tk_image *image)
{
    uint32_t number = pool->images;
    uint64_t used = pool->area_used;
    if (number >= TK_MAX_IMAGES || !copy_image(pool, &pool->image[number], image)) {
        pool->area_used = used;
        pool->images_lost++;
        return TK_MAX_IMAGES;
    }
    pool->image[number].loaded = tk_counters.epoch + 1;
    __atomic_store_n(&pool->images, number + 1, __ATOMIC_RELEASE);
    return number;
}

/* Copy an image's tables into the pool, open an epoch, record the load. */
void tk_publish_image(const struct tk_image *image)
{
    tk_lock();
    tk_open_images(&tk_layout);
    uint32_t number = add_image(tk_pool, image);
    tk_close_images(&tk_layout);
    if (number < TK_MAX_IMAGES)
        tk_new_epoch();
    tk_unlock();
    if (number < TK_MAX_IMAGES && tk_noting())
        TK_RECORD2(image_load, tk_ticket(), number);
}

/* The number of the image while it is loaded; TK_MAX_IMAGES if it is not known. */
static uint32_t find_image(const struct tk_pool *pool, const struct tk_image *image)
{
    uint32_t number = 0, images = pool->images < TK_MAX_IMAGES ? pool->images : TK_MAX_IMAGES;
    while (number < images && (pool->image[number].identity != identity(image) || pool->image[number].unloaded))
        number++;
    return number < images ? number : TK_MAX_IMAGES;
}

void tk_retire_image(const struct tk_image *image)
{
    if (tk_windows.paused)
        tk_image_goes(tk_image_name(image));
    tk_lock();
    uint32_t number = find_image(tk_pool, image);
    if (number < TK_MAX_IMAGES) {
        tk_open_images(&tk_layout);
        __atomic_store_n(&tk_pool->image[number].unloaded, tk_counters.epoch + 1, __ATOMIC_RELEASE);
        tk_close_images(&tk_layout);
        tk_new_epoch();
    }
    tk_unlock();
    if (number < TK_MAX_IMAGES && tk_noting())
        TK_RECORD2(image_unload, tk_ticket(), number);
}
