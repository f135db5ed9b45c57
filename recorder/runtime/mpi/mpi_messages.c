/* Messages from rank to rank: sends and receives, blocking, at once and persistent, and what waits for them. */
#include "mpi_messages.h"

#include <alloca.h>

TK_EXPORT int MPI_Init(int *argc, char ***argv)
{
    int result = TK_REAL(Init, argc, argv);
    tk_mpi_begin();
    return result;
}

TK_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int result = TK_REAL(Init_thread, argc, argv, required, provided);
    tk_mpi_begin();
    return result;
}

/* -- sends ------------------------------------------------------------------------------------ */

#define SEND(name) \
    TK_EXPORT int MPI_##name(const void *buffer, int count, MPI_Datatype type, int peer, int tag, \
                             MPI_Comm communicator) \
    { \
        tk_mpi_sent(communicator, buffer, count, type, peer, tag); \
        return TK_REAL(name, buffer, count, type, peer, tag, communicator); \
    }

SEND(Send)
SEND(Bsend)
SEND(Rsend)
SEND(Ssend)

#define SEND_AT_ONCE(name) \
    TK_EXPORT int MPI_##name(const void *buffer, int count, MPI_Datatype type, int peer, int tag, \
                             MPI_Comm communicator, MPI_Request *request) \
    { \
        tk_mpi_sent(communicator, buffer, count, type, peer, tag); \
        return TK_REAL(name, buffer, count, type, peer, tag, communicator, request); \
    }

SEND_AT_ONCE(Isend)
SEND_AT_ONCE(Ibsend)
SEND_AT_ONCE(Irsend)
SEND_AT_ONCE(Issend)

/* -- receives --------------------------------------------------------------------------------- */

TK_EXPORT int MPI_Recv(void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm communicator,
                       MPI_Status *status)
{
    MPI_Status own;
    MPI_Status *found = status == MPI_STATUS_IGNORE ? &own : status;
    uint64_t number = tk_mpi_posted(peer);
    int result = TK_REAL(Recv, buffer, count, type, peer, tag, communicator, found);
    if (result == MPI_SUCCESS)
        tk_mpi_received(tk_communicator_of(communicator), number, buffer, count, type, found);
    return result;
}

TK_EXPORT int MPI_Sendrecv(const void *sent, int sent_count, MPI_Datatype sent_type, int to, int sent_tag, void *buffer,
                           int count, MPI_Datatype type, int from, int tag, MPI_Comm communicator, MPI_Status *status)
{
    MPI_Status own;
    MPI_Status *found = status == MPI_STATUS_IGNORE ? &own : status;
    uint64_t number = tk_mpi_posted(from);
    tk_mpi_sent(communicator, sent, sent_count, sent_type, to, sent_tag);
    int result = TK_REAL(Sendrecv, sent, sent_count, sent_type, to, sent_tag, buffer, count, type, from, tag,
                         communicator, found);
    if (result == MPI_SUCCESS)
        tk_mpi_received(tk_communicator_of(communicator), number, buffer, count, type, found);
    return result;
}

TK_EXPORT int MPI_Sendrecv_replace(void *buffer, int count, MPI_Datatype type, int to, int sent_tag, int from, int tag,
                                   MPI_Comm communicator, MPI_Status *status)
{
    MPI_Status own;
    MPI_Status *found = status == MPI_STATUS_IGNORE ? &own : status;
    uint64_t number = tk_mpi_posted(from);
    tk_mpi_sent(communicator, buffer, count, type, to, sent_tag);
    int result = TK_REAL(Sendrecv_replace, buffer, count, type, to, sent_tag, from, tag, communicator, found);
    if (result == MPI_SUCCESS)
        tk_mpi_received(tk_communicator_of(communicator), number, buffer, count, type, found);
    return result;
}

static struct tk_operation *begun(MPI_Request request, void *buffer, int count, MPI_Datatype type,
                                  MPI_Comm communicator)
{
    struct tk_operation *operation = tk_operation_begin(request);
    if (operation) {
        operation->communicator = tk_communicator_of(communicator);
        operation->buffer = buffer;
        operation->count = count;
        operation->type = type;
    }
    return operation;
}

TK_EXPORT int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm communicator,
                        MPI_Request *request)
{
    uint64_t number = tk_mpi_posted(peer);
    int result = TK_REAL(Irecv, buffer, count, type, peer, tag, communicator, request);
    struct tk_operation *operation =
        number && result == MPI_SUCCESS ? begun(*request, buffer, count, type, communicator) : NULL;
    if (operation)
        operation->number = number;
    return result;
}

/* -- persistent operations -------------------------------------------------------------------- */

#define SEND_INIT(name) \
    TK_EXPORT int MPI_##name(const void *buffer, int count, MPI_Datatype type, int peer, int tag, \
                             MPI_Comm communicator, MPI_Request *request) \
    { \
        int result = TK_REAL(name, buffer, count, type, peer, tag, communicator, request); \
        struct tk_operation *operation = \
            result == MPI_SUCCESS ? begun(*request, (void *)buffer, count, type, communicator) : NULL; \
        if (operation) { \
            operation->is_send = operation->is_persistent = 1; \
            operation->peer = peer; \
            operation->tag = tag; \
        } \
        return result; \
    }

SEND_INIT(Send_init)
SEND_INIT(Bsend_init)
SEND_INIT(Rsend_init)
SEND_INIT(Ssend_init)

TK_EXPORT int MPI_Recv_init(void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm communicator,
                            MPI_Request *request)
{
    int result = TK_REAL(Recv_init, buffer, count, type, peer, tag, communicator, request);
    struct tk_operation *operation = result == MPI_SUCCESS ? begun(*request, buffer, count, type, communicator) : NULL;
    if (operation) {
        operation->is_persistent = 1;
        operation->peer = peer;
    }
    return result;
}

static void started(MPI_Request request)
{
    struct tk_operation *operation = tk_operation_of((uintptr_t)request);
    if (!operation || !operation->is_persistent)
        return;
    if (operation->is_send)
        tk_mpi_sent_by(operation->communicator, operation->buffer, operation->count, operation->type, operation->peer,
                       operation->tag);
    else
        operation->number = tk_mpi_posted(operation->peer);
}

TK_EXPORT int MPI_Start(MPI_Request *request)
{
    started(*request);
    return TK_REAL(Start, request);
}

TK_EXPORT int MPI_Startall(int count, MPI_Request *requests)
{
    for (int index = 0; index < count; index++)
        started(requests[index]);
    return TK_REAL(Startall, count, requests);
}

/* A receive that is freed while it runs is never seen to be over. */
TK_EXPORT int MPI_Request_free(MPI_Request *request)
{
    struct tk_operation *operation = tk_operation_of((uintptr_t)*request);
    if (operation)
        tk_operation_end(operation);
    return TK_REAL(Request_free, request);
}

/* -- waiting ---------------------------------------------------------------------------------- */

/* What was found before the call, since that changes the requests; the operation is over now. */
static void over(struct tk_operation *operation, const MPI_Status *status)
{
    int is_cancelled = 0;
    if (!operation || operation->is_send || !operation->number)
        return;
    TK_REAL(Test_cancelled, status, &is_cancelled);
    if (!is_cancelled)
        tk_mpi_received(operation->communicator, operation->number, operation->buffer, operation->count,
                        operation->type, status);
    operation->number = 0;
    if (!operation->is_persistent)
        tk_operation_end(operation);
}

TK_EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    MPI_Status own;
    MPI_Status *found = status == MPI_STATUS_IGNORE ? &own : status;
    struct tk_operation *operation = tk_operation_of((uintptr_t)*request);
    int result = TK_REAL(Wait, request, found);
    if (result == MPI_SUCCESS)
        over(operation, found);
    return result;
}

TK_EXPORT int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    MPI_Status own;
    MPI_Status *found = status == MPI_STATUS_IGNORE ? &own : status;
    struct tk_operation *operation = tk_operation_of((uintptr_t)*request);
    int result = TK_REAL(Test, request, flag, found);
    if (result == MPI_SUCCESS && *flag)
        over(operation, found);
    return result;
}

/* Room on the stack for so many requests; beyond that nobody looks at them. */
#define MOST 65536

#define BEFORE(count, requests, statuses) \
    int known = (count) > 0 && (count) <= MOST ? (count) : 0; \
    struct tk_operation **operations = alloca((size_t)known * sizeof *operations + 8); \
    MPI_Status *found = statuses; \
    if (known && (statuses) == MPI_STATUSES_IGNORE) \
        found = alloca((size_t)known * sizeof *found); \
    for (int index = 0; index < known; index++) \
    operations[index] = tk_operation_of((uintptr_t)(requests)[index])

TK_EXPORT int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    BEFORE(count, requests, statuses);
    int result = TK_REAL(Waitall, count, requests, found);
    for (int index = 0; result == MPI_SUCCESS && index < known; index++)
        over(operations[index], &found[index]);
    return result;
}

TK_EXPORT int MPI_Testall(int count, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    BEFORE(count, requests, statuses);
    int result = TK_REAL(Testall, count, requests, flag, found);
    for (int index = 0; result == MPI_SUCCESS && *flag && index < known; index++)
        over(operations[index], &found[index]);
    return result;
}

TK_EXPORT int MPI_Waitany(int count, MPI_Request *requests, int *place, MPI_Status *status)
{
    MPI_Status own;
    BEFORE(count, requests, MPI_STATUSES_IGNORE);
    found = status == MPI_STATUS_IGNORE ? &own : status;
    int result = TK_REAL(Waitany, count, requests, place, found);
    if (result == MPI_SUCCESS && *place != MPI_UNDEFINED && *place < known)
        over(operations[*place], found);
    return result;
}

TK_EXPORT int MPI_Testany(int count, MPI_Request *requests, int *place, int *flag, MPI_Status *status)
{
    MPI_Status own;
    BEFORE(count, requests, MPI_STATUSES_IGNORE);
    found = status == MPI_STATUS_IGNORE ? &own : status;
    int result = TK_REAL(Testany, count, requests, place, flag, found);
    if (result == MPI_SUCCESS && *flag && *place != MPI_UNDEFINED && *place < known)
        over(operations[*place], found);
    return result;
}

TK_EXPORT int MPI_Waitsome(int count, MPI_Request *requests, int *done, int *places, MPI_Status *statuses)
{
    BEFORE(count, requests, statuses);
    int result = TK_REAL(Waitsome, count, requests, done, places, found);
    for (int index = 0; result == MPI_SUCCESS && known && *done != MPI_UNDEFINED && index < *done; index++)
        over(operations[places[index]], &found[index]);
    return result;
}

TK_EXPORT int MPI_Testsome(int count, MPI_Request *requests, int *done, int *places, MPI_Status *statuses)
{
    BEFORE(count, requests, statuses);
    int result = TK_REAL(Testsome, count, requests, done, places, found);
    for (int index = 0; result == MPI_SUCCESS && known && *done != MPI_UNDEFINED && index < *done; index++)
        over(operations[places[index]], &found[index]);
    return result;
}

/* -- communicators ---------------------------------------------------------------------------- */

#define MAKE(name, parameters, ...) \
    TK_EXPORT int MPI_##name parameters \
    { \
        int result = TK_REAL(name, __VA_ARGS__); \
        if (result == MPI_SUCCESS) \
            tk_communicator_made(parent, *made); \
        return result; \
    }

MAKE(Comm_dup, (MPI_Comm parent, MPI_Comm *made), parent, made)
MAKE(Comm_dup_with_info, (MPI_Comm parent, MPI_Info info, MPI_Comm *made), parent, info, made)
MAKE(Comm_split, (MPI_Comm parent, int colour, int order, MPI_Comm *made), parent, colour, order, made)
MAKE(Comm_split_type, (MPI_Comm parent, int type, int order, MPI_Info info, MPI_Comm *made), parent, type, order, info,
     made)
MAKE(Comm_create, (MPI_Comm parent, MPI_Group group, MPI_Comm *made), parent, group, made)
MAKE(Cart_create, (MPI_Comm parent, int count, const int *sizes, const int *wraps, int moves, MPI_Comm *made), parent,
     count, sizes, wraps, moves, made)
MAKE(Cart_sub, (MPI_Comm parent, const int *kept, MPI_Comm *made), parent, kept, made)
MAKE(Graph_create, (MPI_Comm parent, int count, const int *index, const int *edges, int moves, MPI_Comm *made), parent,
     count, index, edges, moves, made)
