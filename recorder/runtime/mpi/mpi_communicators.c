/* Communicators: numbers that all ranks agree on without a message, and the ranks in MPI_COMM_WORLD of their members.
 */
#include "mpi_messages.h"

#pragma weak PMPI_Comm_create_keyval
#pragma weak PMPI_Comm_get_attr
#pragma weak PMPI_Comm_set_attr
#pragma weak PMPI_Comm_group
#pragma weak PMPI_Comm_rank
#pragma weak PMPI_Comm_remote_group
#pragma weak PMPI_Comm_test_inter
#pragma weak PMPI_Group_free
#pragma weak PMPI_Group_size
#pragma weak PMPI_Group_translate_ranks

#define UNKNOWN 0xffffffffu /* a rank that is not in MPI_COMM_WORLD: of a spawned process */

static int key = MPI_KEYVAL_INVALID;

static int not_copied(MPI_Comm communicator, int keyval, void *extra, void *value, void *copy, int *flag)
{
    (void)communicator, (void)keyval, (void)extra, (void)value, (void)copy;
    *flag = 0;
    return MPI_SUCCESS;
}

static int kept(MPI_Comm communicator, int keyval, void *value, void *extra)
{
    (void)communicator, (void)keyval, (void)value, (void)extra;
    return MPI_SUCCESS;
}

static uint64_t mixed(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static struct tk_communicator *described(MPI_Comm communicator, uint64_t seed)
{
    MPI_Group group, world;
    int rank = 0, is_inter = 0, size = 0;
    PMPI_Comm_rank(communicator, &rank);
    PMPI_Comm_test_inter(communicator, &is_inter);
    if (is_inter)
        PMPI_Comm_remote_group(communicator, &group);
    else
        PMPI_Comm_group(communicator, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_size(group, &size);
    struct tk_communicator *found =
        tk_mpi_memory(sizeof *found + (uint32_t)size * (sizeof found->world[0] + sizeof(int)));
    if (found) {
        int *ranks = (int *)&found->world[size];
        for (int peer = 0; peer < size; peer++)
            ranks[peer] = peer;
        PMPI_Group_translate_ranks(group, size, ranks, world, (int *)found->world);
        found->rank = (uint32_t)rank;
        found->peers = (uint32_t)size;
        for (int peer = 0; peer < size; peer++)
            if ((int)found->world[peer] < 0)
                found->world[peer] = UNKNOWN;
        /* an inter-communicator's two sides know different members */
        found->id = mixed(seed, is_inter ? 0 : mixed((uint64_t)size, found->world[0]));
        PMPI_Comm_set_attr(communicator, key, found);
        tk_mpi_event(TK_EVENT_mpi_communicator, found->id, found->rank, found->peers);
    }
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    return found;
}

/* NULL before MPI_Init and where there is no memory. */
struct tk_communicator *tk_communicator_of(MPI_Comm communicator)
{
    void *found;
    int is_known = 0;
    if (key == MPI_KEYVAL_INVALID || communicator == MPI_COMM_NULL)
        return NULL;
    PMPI_Comm_get_attr(communicator, key, &found, &is_known);
    return is_known ? found : described(communicator, 0);
}

/* All ranks of the parent come here for each communicator that is made of it, so they count alike. */
void tk_communicator_made(MPI_Comm parent, MPI_Comm made)
{
    struct tk_communicator *of = tk_communicator_of(parent);
    if (!of)
        return;
    uint64_t seed = mixed(of->id, ++of->made);
    if (made != MPI_COMM_NULL)
        described(made, seed);
}

/* The peer's rank in MPI_COMM_WORLD, and the tag above it. */
uint64_t tk_envelope(const struct tk_communicator *communicator, int peer, int tag)
{
    uint32_t world = peer >= 0 && (uint32_t)peer < communicator->peers ? communicator->world[peer] : UNKNOWN;
    return world | (uint64_t)(uint32_t)tag << 32;
}

void tk_mpi_begin(void)
{
    if (PMPI_Comm_create_keyval(not_copied, kept, &key, NULL) == MPI_SUCCESS)
        tk_communicator_of(MPI_COMM_WORLD);
}
