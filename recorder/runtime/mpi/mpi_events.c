/* What is recorded of messages: who sends how much to whom, and what MPI reads and writes for the program. */
#include "mpi_messages.h"

#pragma weak PMPI_Get_count
#pragma weak PMPI_Type_get_extent
#pragma weak PMPI_Type_get_true_extent
#pragma weak PMPI_Type_size

#define MOST_PIECES 4096 /* elements with gaps between, each of which is recorded */

uint64_t tk_bytes_of(int count, MPI_Datatype type)
{
    int size = 0;
    PMPI_Type_size(type, &size);
    return count > 0 && size > 0 ? (uint64_t)count * (uint64_t)size : 0;
}

/* The bytes of elements that are whole in themselves; of types with holes nothing is said, rather than too much. */
static void touched(enum tk_event event, const void *buffer, int count, MPI_Datatype type)
{
    MPI_Aint lower, extent, true_lower, true_extent;
    int size = 0;
    if (count <= 0 || buffer == MPI_IN_PLACE)
        return;
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &lower, &extent);
    PMPI_Type_get_true_extent(type, &true_lower, &true_extent);
    if (size <= 0 || true_extent != size)
        return;
    uint64_t first = (uint64_t)((uintptr_t)buffer + (uintptr_t)true_lower);
    if (extent == size || count == 1) {
        tk_mpi_event(event, first, (uint64_t)count * (uint64_t)size, 0);
        return;
    }
    for (int piece = 0; piece < count && piece < MOST_PIECES; piece++)
        tk_mpi_event(event, first + (uint64_t)(piece * extent), (uint64_t)size, 0);
}

void tk_mpi_loads(const void *buffer, int count, MPI_Datatype type)
{
    touched(TK_EVENT_library_load, buffer, count, type);
}

void tk_mpi_stores(void *buffer, int count, MPI_Datatype type)
{
    touched(TK_EVENT_library_store, buffer, count, type);
}

/* Before the send, so that its message has been sent when it is received. */
void tk_mpi_sent_by(const struct tk_communicator *communicator, const void *buffer, int count, MPI_Datatype type,
                    int peer, int tag)
{
    if (!communicator || peer == MPI_PROC_NULL)
        return;
    tk_mpi_loads(buffer, count, type);
    tk_mpi_event(TK_EVENT_mpi_envelope, communicator->id, tk_envelope(communicator, peer, tag), 0);
    tk_mpi_event(TK_EVENT_mpi_send, (uintptr_t)buffer, tk_bytes_of(count, type), 0);
}

void tk_mpi_sent(MPI_Comm communicator, const void *buffer, int count, MPI_Datatype type, int peer, int tag)
{
    tk_mpi_sent_by(tk_communicator_of(communicator), buffer, count, type, peer, tag);
}

/* The number of a receive: messages of one sender are taken by receives in the order in which these are posted. None,
 * 0, has one of nobody. */
uint64_t tk_mpi_posted(int peer)
{
    static uint64_t posted;
    if (peer == MPI_PROC_NULL)
        return 0;
    uint64_t number = __atomic_add_fetch(&posted, 1, __ATOMIC_RELAXED);
    tk_mpi_event(TK_EVENT_mpi_post, number, 0, 0);
    return number;
}

void tk_mpi_received(const struct tk_communicator *communicator, uint64_t number, void *buffer, int count,
                     MPI_Datatype type, const MPI_Status *status)
{
    int bytes = 0;
    if (!communicator || status->MPI_SOURCE == MPI_PROC_NULL)
        return;
    PMPI_Get_count(status, MPI_BYTE, &bytes);
    if (bytes == MPI_UNDEFINED || bytes < 0)
        bytes = 0;
    uint64_t whole = tk_bytes_of(1, type);
    int got = whole ? (int)((uint64_t)bytes / whole) : 0;
    tk_mpi_stores(buffer, got < count ? got : count, type);
    tk_mpi_event(TK_EVENT_mpi_envelope, communicator->id,
                 tk_envelope(communicator, status->MPI_SOURCE, status->MPI_TAG), 0);
    tk_mpi_event(TK_EVENT_mpi_receive, number, (uint64_t)bytes, 0);
}

void tk_mpi_collective(uint64_t kind, MPI_Comm communicator, int root, uint64_t bytes)
{
    const struct tk_communicator *of = tk_communicator_of(communicator);
    if (!of)
        return;
    tk_mpi_event(TK_EVENT_mpi_envelope, of->id, root < 0 ? UINT32_MAX : tk_envelope(of, root, 0), 0);
    tk_mpi_event(TK_EVENT_mpi_collective, kind, bytes, 0);
}
