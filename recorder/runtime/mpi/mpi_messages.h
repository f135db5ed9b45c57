/* What the wrappers of MPI's functions have in common. They are built against the mpi.h of the MPI at hand, into a
 * library of their own that is preloaded beside libtracekit-preload.so; a process that is no rank never calls them.
 *
 * Whatever libmpi defines is weak here: the library is also loaded into mpirun and the shells that it starts. */
#ifndef TRACEKIT_MPI_MESSAGES_H
#define TRACEKIT_MPI_MESSAGES_H

#include "../compiler.h"
#include "../format.h"

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* The function itself, by its name in MPI's profiling interface. */
#define TK_REAL(name, ...) \
    ({ \
        extern __typeof__(MPI_##name) PMPI_##name __attribute__((weak)); \
        PMPI_##name(__VA_ARGS__); \
    })

#ifdef OPEN_MPI
#pragma weak ompi_mpi_comm_world
#pragma weak ompi_mpi_comm_null
#pragma weak ompi_mpi_byte
#pragma weak ompi_request_null
#endif

/* A communicator as this process knows it: kept for ever, since requests outlive it. */
struct tk_communicator {
    uint64_t id;      /* the same in all its ranks */
    uint64_t made;    /* communicators that were made of it */
    uint32_t rank;    /* of this process */
    uint32_t peers;   /* whom messages can go to: of an inter-communicator, the other group */
    uint32_t world[]; /* their ranks in MPI_COMM_WORLD */
};

/* A receive that is under way, or a persistent operation. */
struct tk_operation {
    struct tk_operation *next; /* in the list of its hash */
    uintptr_t request;
    const struct tk_communicator *communicator;
    void *buffer;
    MPI_Datatype type;
    int count;
    int peer, tag;   /* of a persistent send */
    uint64_t number; /* of the receive, from 1 on; 0: a persistent operation that does not run */
    uint8_t is_send, is_persistent;
};

/* mpi_communicators.c */
void tk_mpi_begin(void);
struct tk_communicator *tk_communicator_of(MPI_Comm communicator);
void tk_communicator_made(MPI_Comm parent, MPI_Comm made);
uint64_t tk_envelope(const struct tk_communicator *communicator, int peer, int tag);

/* mpi_operations.c */
void *tk_mpi_memory(size_t bytes);
struct tk_operation *tk_operation_begin(MPI_Request request);
struct tk_operation *tk_operation_of(uintptr_t request);
void tk_operation_end(struct tk_operation *operation);

/* mpi_events.c */
void tk_mpi_loads(const void *buffer, int count, MPI_Datatype type);
void tk_mpi_stores(void *buffer, int count, MPI_Datatype type);
uint64_t tk_bytes_of(int count, MPI_Datatype type);
void tk_mpi_sent(MPI_Comm communicator, const void *buffer, int count, MPI_Datatype type, int peer, int tag);
void tk_mpi_sent_by(const struct tk_communicator *communicator, const void *buffer, int count, MPI_Datatype type,
                    int peer, int tag);
uint64_t tk_mpi_posted(int peer);
void tk_mpi_received(const struct tk_communicator *communicator, uint64_t number, void *buffer, int count,
                     MPI_Datatype type, const MPI_Status *status);
void tk_mpi_collective(uint64_t kind, MPI_Comm communicator, int root, uint64_t bytes);

/* libtracekit-preload.so; not there in a process that was started by one that is recorded. */
extern void __tk_mpi_event(uint32_t event, uint64_t a, uint64_t b, uint64_t c) __attribute__((weak));

static inline void tk_mpi_event(enum tk_event event, uint64_t a, uint64_t b, uint64_t c)
{
    if (__tk_mpi_event)
        __tk_mpi_event(event, a, b, c);
}

#endif
