/* Operations that have a request: receives that are under way, and persistent ones. */
#include "mpi_messages.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LISTS 4096
#define CHUNK (1u << 20)

static struct tk_operation *lists[LISTS];
static struct tk_operation *unused;
static char *room, *room_end;
static int lock_word;

static void lock(void)
{
    while (__atomic_exchange_n(&lock_word, 1, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void unlock(void)
{
    __atomic_store_n(&lock_word, 0, __ATOMIC_RELEASE);
}

/* The program's own allocator would record this as the program's. */
static void *more(size_t bytes)
{
    size_t length = (bytes + 15) & ~(size_t)15;
    if ((size_t)(room_end - room) < length) {
        size_t chunk = length > CHUNK ? (length + 4095) & ~(size_t)4095 : CHUNK;
        void *got = (void *)syscall(SYS_mmap, NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
        if (got == MAP_FAILED)
            return NULL;
        room = got;
        room_end = room + chunk;
    }
    void *found = room;
    room += length;
    return found;
}

/* Memory for ever; NULL if there is none. */
void *tk_mpi_memory(size_t bytes)
{
    lock();
    void *found = more(bytes);
    unlock();
    return found;
}

static struct tk_operation **list_of(uintptr_t request)
{
    return &lists[(uint64_t)request * 0x9e3779b97f4a7c15u >> 52];
}

/* A new one, of which only the request is known; NULL if there is no memory. */
struct tk_operation *tk_operation_begin(MPI_Request request)
{
    lock();
    struct tk_operation *found = unused;
    if (found)
        unused = found->next;
    else
        found = more(sizeof *found);
    if (found) {
        struct tk_operation **list = list_of((uintptr_t)request);
        *found = (struct tk_operation){.next = *list, .request = (uintptr_t)request};
        *list = found;
    }
    unlock();
    return found;
}

/* NULL: a send, or something that nobody follows. */
struct tk_operation *tk_operation_of(uintptr_t request)
{
    lock();
    struct tk_operation *found = *list_of(request);
    while (found && found->request != request)
        found = found->next;
    unlock();
    return found;
}

void tk_operation_end(struct tk_operation *operation)
{
    lock();
    struct tk_operation **place = list_of(operation->request);
    while (*place != operation)
        place = &(*place)->next;
    *place = operation->next;
    operation->next = unused;
    unused = operation;
    unlock();
}
