/* Collective operations: who takes part in what, how much each rank gives, and what MPI reads and writes for it.
 *
 * An operation at once (MPI_Ibcast and so on) counts where it is begun; its memory, too. */
#include "mpi_messages.h"

static int size_of(MPI_Comm communicator)
{
    int size = 0, is_inter = 0;
    TK_REAL(Comm_test_inter, communicator, &is_inter);
    if (is_inter)
        TK_REAL(Comm_remote_size, communicator, &size);
    else
        TK_REAL(Comm_size, communicator, &size);
    return size;
}

static int is_root(MPI_Comm communicator, int root)
{
    int rank = 0;
    TK_REAL(Comm_rank, communicator, &rank);
    return root == rank || root == MPI_ROOT;
}

/* Parts of different lengths, one for each rank. */
static void parts(int stores, const void *buffer, const int *counts, const int *places, MPI_Datatype type, int ranks)
{
    MPI_Aint lower, extent;
    TK_REAL(Type_get_extent, type, &lower, &extent);
    if (buffer == MPI_IN_PLACE)
        return;
    for (int rank = 0; rank < ranks; rank++) {
        char *part = (char *)buffer + places[rank] * extent;
        if (stores)
            tk_mpi_stores(part, counts[rank], type);
        else
            tk_mpi_loads(part, counts[rank], type);
    }
}

static uint64_t total(const int *counts, int ranks)
{
    uint64_t sum = 0;
    for (int rank = 0; rank < ranks; rank++)
        sum += (uint64_t)counts[rank];
    return sum;
}

#define BARE(...) __VA_ARGS__

/* One function: `reads` and `writes` are statements that say what it reads, and what it has written. */
#define COLLECTIVE(name, kind, root, bytes, reads, writes, parameters, ...) \
    TK_EXPORT int MPI_##name parameters \
    { \
        reads; \
        tk_mpi_collective(TK_MPI_##kind, communicator, root, bytes); \
        int result = TK_REAL(name, __VA_ARGS__); \
        if (result == MPI_SUCCESS) { \
            writes; \
        } \
        return result; \
    }

/* It and its other form, which has a request. */
#define BOTH(name, at_once, kind, root, bytes, reads, writes, parameters, ...) \
    COLLECTIVE(name, kind, root, bytes, reads, writes, (BARE parameters), __VA_ARGS__) \
    COLLECTIVE(at_once, kind, root, bytes, reads, writes, (BARE parameters, MPI_Request * request), __VA_ARGS__, \
               request)

BOTH(Barrier, Ibarrier, BARRIER, -1, 0, , , (MPI_Comm communicator), communicator)

BOTH(Bcast, Ibcast, BROADCAST, root, is_root(communicator, root) ? tk_bytes_of(count, type) : 0,
     if (is_root(communicator, root)) tk_mpi_loads(buffer, count, type),
     if (!is_root(communicator, root)) tk_mpi_stores(buffer, count, type),
     (void *buffer, int count, MPI_Datatype type, int root, MPI_Comm communicator), buffer, count, type, root,
     communicator)

/* What a rank gives stands in `given`, or already where the result will be. */
#define GIVEN(where) ((given) == MPI_IN_PLACE ? (where) : (given))

BOTH(Reduce, Ireduce, REDUCE, root, tk_bytes_of(count, type), tk_mpi_loads(GIVEN(taken), count, type),
     if (is_root(communicator, root)) tk_mpi_stores(taken, count, type),
     (const void *given, void *taken, int count, MPI_Datatype type, MPI_Op operation, int root, MPI_Comm communicator),
     given, taken, count, type, operation, root, communicator)

#define REDUCTION(name, at_once, kind) \
    BOTH(name, at_once, kind, -1, tk_bytes_of(count, type), tk_mpi_loads(GIVEN(taken), count, type), \
         tk_mpi_stores(taken, count, type), \
         (const void *given, void *taken, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm communicator), \
         given, taken, count, type, operation, communicator)

REDUCTION(Allreduce, Iallreduce, ALLREDUCE)
REDUCTION(Scan, Iscan, SCAN)
REDUCTION(Exscan, Iexscan, EXSCAN)

BOTH(Reduce_scatter_block, Ireduce_scatter_block, REDUCE_SCATTER, -1,
     tk_bytes_of(count, type) * (uint64_t)size_of(communicator),
     tk_mpi_loads(GIVEN(taken), count *size_of(communicator), type), tk_mpi_stores(taken, count, type),
     (const void *given, void *taken, int count, MPI_Datatype type, MPI_Op operation, MPI_Comm communicator), given,
     taken, count, type, operation, communicator)

static int own_count(const int *counts, MPI_Comm communicator)
{
    int rank = 0;
    TK_REAL(Comm_rank, communicator, &rank);
    return counts[rank];
}

BOTH(Reduce_scatter, Ireduce_scatter, REDUCE_SCATTER, -1, tk_bytes_of((int)total(counts, size_of(communicator)), type),
     tk_mpi_loads(GIVEN(taken), (int)total(counts, size_of(communicator)), type),
     tk_mpi_stores(taken, own_count(counts, communicator), type),
     (const void *given, void *taken, const int *counts, MPI_Datatype type, MPI_Op operation, MPI_Comm communicator),
     given, taken, counts, type, operation, communicator)

/* -- parts of one length ---------------------------------------------------------------------- */

#define PARTS \
    (const void *given, int given_count, MPI_Datatype given_type, void *taken, int count, MPI_Datatype type, \
     MPI_Comm communicator)
#define PARTS_OF_ROOT \
    (const void *given, int given_count, MPI_Datatype given_type, void *taken, int count, MPI_Datatype type, int root, \
     MPI_Comm communicator)

BOTH(Gather, Igather, GATHER, root, tk_bytes_of(given_count, given_type), tk_mpi_loads(given, given_count, given_type),
     if (is_root(communicator, root)) tk_mpi_stores(taken, count *size_of(communicator), type), PARTS_OF_ROOT, given,
     given_count, given_type, taken, count, type, root, communicator)

BOTH(Scatter, Iscatter, SCATTER, root,
     is_root(communicator, root) ? tk_bytes_of(given_count, given_type) * (uint64_t)size_of(communicator) : 0,
     if (is_root(communicator, root)) tk_mpi_loads(given, given_count *size_of(communicator), given_type),
     tk_mpi_stores(taken, count, type), PARTS_OF_ROOT, given, given_count, given_type, taken, count, type, root,
     communicator)

BOTH(Allgather, Iallgather, ALLGATHER, -1,
     given == MPI_IN_PLACE ? tk_bytes_of(count, type) : tk_bytes_of(given_count, given_type),
     tk_mpi_loads(given, given_count, given_type), tk_mpi_stores(taken, count *size_of(communicator), type), PARTS,
     given, given_count, given_type, taken, count, type, communicator)

BOTH(Alltoall, Ialltoall, ALLTOALL, -1, tk_bytes_of(count, type) * (uint64_t)size_of(communicator),
     tk_mpi_loads(GIVEN(taken), (given == MPI_IN_PLACE ? count : given_count) * size_of(communicator),
                  given == MPI_IN_PLACE ? type : given_type),
     tk_mpi_stores(taken, count *size_of(communicator), type), PARTS, given, given_count, given_type, taken, count,
     type, communicator)

/* -- parts of different lengths --------------------------------------------------------------- */

BOTH(Gatherv, Igatherv, GATHER, root, tk_bytes_of(given_count, given_type),
     tk_mpi_loads(given, given_count, given_type),
     if (is_root(communicator, root)) parts(1, taken, counts, places, type, size_of(communicator)),
     (const void *given, int given_count, MPI_Datatype given_type, void *taken, const int *counts, const int *places,
      MPI_Datatype type, int root, MPI_Comm communicator),
     given, given_count, given_type, taken, counts, places, type, root, communicator)

BOTH(Scatterv, Iscatterv, SCATTER, root,
     is_root(communicator, root) ? tk_bytes_of((int)total(counts, size_of(communicator)), given_type) : 0,
     if (is_root(communicator, root)) parts(0, given, counts, places, given_type, size_of(communicator)),
     tk_mpi_stores(taken, count, type),
     (const void *given, const int *counts, const int *places, MPI_Datatype given_type, void *taken, int count,
      MPI_Datatype type, int root, MPI_Comm communicator),
     given, counts, places, given_type, taken, count, type, root, communicator)

BOTH(Allgatherv, Iallgatherv, ALLGATHER, -1,
     given == MPI_IN_PLACE ? tk_bytes_of(own_count(counts, communicator), type) : tk_bytes_of(given_count, given_type),
     tk_mpi_loads(given, given_count, given_type), parts(1, taken, counts, places, type, size_of(communicator)),
     (const void *given, int given_count, MPI_Datatype given_type, void *taken, const int *counts, const int *places,
      MPI_Datatype type, MPI_Comm communicator),
     given, given_count, given_type, taken, counts, places, type, communicator)

BOTH(Alltoallv, Ialltoallv, ALLTOALL, -1,
     given == MPI_IN_PLACE ? tk_bytes_of((int)total(counts, size_of(communicator)), type)
                           : tk_bytes_of((int)total(given_counts, size_of(communicator)), given_type),
     if (given == MPI_IN_PLACE) parts(0, taken, counts, places, type, size_of(communicator));
     else parts(0, given, given_counts, given_places, given_type, size_of(communicator)),
     parts(1, taken, counts, places, type, size_of(communicator)),
     (const void *given, const int *given_counts, const int *given_places, MPI_Datatype given_type, void *taken,
      const int *counts, const int *places, MPI_Datatype type, MPI_Comm communicator),
     given, given_counts, given_places, given_type, taken, counts, places, type, communicator)
