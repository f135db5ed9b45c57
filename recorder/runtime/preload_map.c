/* Where the pool lies in the program's address space: apart, so that a program whose stores run out of its heap, its
 * stack, its globals or what it mapped meets pages that cannot be written, as it would without the recorder.
 *
 *     guard | the runtime's own pages | gap | pool, images | exchange | buffers in use | buffers to come | guard
 *             as they are used                read-only      written    written          inaccessible
 *
 * The place is terabytes away from where the kernel puts what nobody chose a place for. */
#include "preload.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000 /* older kernels take the address for a hint */
#endif

#define TERABYTE (1ull << 40)
#define GIGABYTE (1ull << 30)
#define GUARD (4 * GIGABYTE)
#define SMALL_GUARD (1ull << 16) /* where address space is limited */
#define OWN_BYTES (64ull << 20)
#define SMALL_OWN (1ull << 20)
#define TRIES 16 /* in each place: a forked child's pool lies behind its parent's */

struct tk_pool *tk_pool;
struct tk_layout tk_layout;

/* The reservation that holds the pool of this process; all 0: the kernel chose where the pool is. */
struct reservation {
    char *first, *end;
    uint64_t guard; /* bytes at both ends */
    char *own;      /* the runtime's own pages */
    uint64_t own_bytes, own_used;
};

static struct reservation reservation;

static void *map(void *address, uint64_t bytes, int protection, int flags, int fd)
{
    void *memory = (void *)syscall(SYS_mmap, address, bytes, (long)protection, (long)flags, (long)fd, 0L);
    return memory == MAP_FAILED ? NULL : memory;
}

static char *reserve_at(uint64_t address, uint64_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (address ? MAP_FIXED_NOREPLACE : 0);
    char *memory = map((void *)address, bytes, PROT_NONE, flags, -1);
    if (!memory || !address || (uint64_t)memory == address)
        return memory;
    tk_munmap(memory, bytes);
    return NULL;
}

/* Far from the program, its heap, what the kernel places by itself and what sanitizers claim; the last two for address
 * spaces of 39 bits. 0: wherever there is room. */
static char *reserve_apart(uint64_t bytes)
{
    static const struct {
        uint64_t address, step;
    } places[] = {{17 * TERABYTE, 64 * GIGABYTE},
                  {34 * TERABYTE, 64 * GIGABYTE},
                  {68 * GIGABYTE, 16 * GIGABYTE},
                  {136 * GIGABYTE, 16 * GIGABYTE}};
    for (size_t place = 0; place < sizeof places / sizeof *places; place++)
        for (uint64_t number = 0; number < TRIES; number++) {
            char *memory = reserve_at(places[place].address + number * places[place].step, bytes);
            if (memory)
                return memory;
        }
    return reserve_at(0, bytes);
}

static int is_address_space_limited(void)
{
    struct rlimit limit;
    return syscall(SYS_prlimit64, 0, RLIMIT_AS, NULL, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

static struct reservation reserve_parts(uint64_t pool_bytes, uint64_t guard, uint64_t own_bytes)
{
    uint64_t bytes = guard + own_bytes + SMALL_GUARD + tk_pages(pool_bytes) + guard;
    char *first = reserve_apart(bytes);
    return first ? (struct reservation){first, first + bytes, guard, first + guard, own_bytes, 0}
                 : (struct reservation){0};
}

static struct reservation reserve(uint64_t pool_bytes)
{
    struct reservation found = {0};
    if (!is_address_space_limited())
        found = reserve_parts(pool_bytes, GUARD, OWN_BYTES);
    return found.first ? found : reserve_parts(pool_bytes, SMALL_GUARD, SMALL_OWN);
}

/* What describes images may be written between the two calls; the caller holds tk_lock. */
void tk_open_images(const struct tk_layout *at)
{
    mprotect(at->pool, at->area_offset + at->area_bytes, PROT_READ | PROT_WRITE);
}

void tk_close_images(const struct tk_layout *at)
{
    mprotect(at->pool, at->area_offset + at->area_bytes, PROT_READ);
}

/* Make a buffer beyond those in use accessible; 0 if the system refuses. */
int tk_open_buffer(const struct tk_layout *at, uint32_t number)
{
    return syscall(SYS_mprotect, tk_buffer_words(at, &at->exchange->buffer[number]),
                   at->buffer_words * sizeof(uint64_t), PROT_READ | PROT_WRITE) == 0;
}

static int is_pool(const struct tk_pool *pool, uint64_t bytes, struct tk_layout *layout)
{
    if (pool->magic != TK_POOL_MAGIC || pool->bytes != bytes || pool->buffers > TK_MAX_BUFFERS)
        return 0;
    *layout = tk_layout_of((void *)pool, pool->buffer_words, pool->area_bytes);
    return layout->bytes == bytes;
}

static int is_claimed(struct tk_pool *pool)
{
    uint32_t nobody = 0;
    return __atomic_compare_exchange_n(&pool->owner, &nobody, (uint32_t)getpid(), 0, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

static void protect(const struct tk_layout *at)
{
    char *spare = (char *)(at->words + (uint64_t)at->pool->buffers * at->buffer_words);
    mprotect(spare, (size_t)((char *)at->pool + at->bytes - spare), PROT_NONE);
    madvise(at->pool, at->bytes, MADV_DONTDUMP); /* a core file is written as fast as without */
    tk_close_images(at);
}

/* Map the pool behind a descriptor and make it this process's own. 0 if it is none, or another's. */
int tk_map_pool(int fd, struct tk_layout *layout)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || (size_t)status.st_size < sizeof(struct tk_pool))
        return 0;
    uint64_t bytes = (uint64_t)status.st_size;
    struct reservation held = reserve(bytes);
    char *place = held.first ? held.own + held.own_bytes + SMALL_GUARD : NULL;
    struct tk_pool *pool = map(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (place ? MAP_FIXED : 0), fd);
    if (pool && is_pool(pool, bytes, layout) && is_claimed(pool)) {
        protect(layout);
        reservation = held;
        return 1;
    }
    if (held.first)
        tk_munmap(held.first, (size_t)(held.end - held.first));
    else if (pool)
        tk_munmap(pool, bytes);
    return 0;
}

/* Zeroed pages for what the runtime itself keeps, away from the program's; NULL if there is no memory. */
void *tk_own_pages(uint64_t bytes)
{
    bytes = tk_pages(bytes);
    if (__atomic_load_n(&reservation.own_used, __ATOMIC_RELAXED) + bytes <= reservation.own_bytes) {
        uint64_t offset = __atomic_fetch_add(&reservation.own_used, bytes, __ATOMIC_RELAXED);
        if (offset + bytes <= reservation.own_bytes &&
            mprotect(reservation.own + offset, bytes, PROT_READ | PROT_WRITE) == 0)
            return reservation.own + offset;
    }
    return tk_mmap(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* -- a program that limits its address space has as much of it as without the recorder's guards ------------------- */

static void shrink_guards(int resource, uint64_t limit)
{
    if (resource != RLIMIT_AS || limit == RLIM_INFINITY || reservation.guard <= SMALL_GUARD)
        return;
    uint64_t less = reservation.guard - SMALL_GUARD;
    tk_munmap(reservation.first, less);
    tk_munmap(reservation.end - less, less);
    reservation.first += less;
    reservation.end -= less;
    reservation.guard = SMALL_GUARD;
}

#define WRAP_LIMIT(name, type) \
    TK_EXPORT int name(__rlimit_resource_t resource, const struct type *limit) \
    { \
        if (limit) \
            shrink_guards((int)resource, limit->rlim_cur); \
        return TK_REAL(name)(resource, limit); \
    }

#define WRAP_PROCESS_LIMIT(name, type) \
    TK_EXPORT int name(pid_t process, __rlimit_resource_t resource, const struct type *limit, struct type *old) \
    { \
        if (limit && (process == 0 || process == getpid())) \
            shrink_guards((int)resource, limit->rlim_cur); \
        return TK_REAL(name)(process, resource, limit, old); \
    }

WRAP_LIMIT(setrlimit, rlimit)
WRAP_LIMIT(setrlimit64, rlimit64)
WRAP_PROCESS_LIMIT(prlimit, rlimit)
WRAP_PROCESS_LIMIT(prlimit64, rlimit64)
