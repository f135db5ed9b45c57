/* MPI as one process sees it. */
#ifndef ONE_PROCESS_MPI_H
#define ONE_PROCESS_MPI_H
#include <string.h>
typedef int MPI_Comm, MPI_Datatype, MPI_Status, MPI_Request;
enum { MPI_INT = sizeof(int), MPI_DOUBLE = sizeof(double), MPI_MIN = 1, MPI_SUM = 2, MPI_MAX = 3, MPI_COMM_WORLD = 0 };
static inline int MPI_Comm_size(MPI_Comm c, int *size) { return (void)c, *size = 1, 0; }
static inline int MPI_Comm_rank(MPI_Comm c, int *rank) { return (void)c, *rank = 0, 0; }
static inline int MPI_Barrier(MPI_Comm c) { return (void)c, 0; }
static inline int MPI_Abort(MPI_Comm c, int code) { return (void)c, code; }
static inline double MPI_Wtime(void) {
  static double ticks;
  return ticks += 1e-3;
}
static inline int MPI_Allreduce(void *from, void *to, int n, MPI_Datatype size, int op, MPI_Comm c) {
  (void)op, (void)c;
  memcpy(to, from, (size_t)n * (size_t)size);
  return 0;
}
static inline int MPI_Gather(void *from, int n, MPI_Datatype size, void *to, int m, MPI_Datatype s, int root,
                             MPI_Comm c) {
  (void)m, (void)s, (void)root;
  return MPI_Allreduce(from, to, n, size, 0, c);
}
static inline int MPI_Alltoall(void *from, int n, MPI_Datatype size, void *to, int m, MPI_Datatype s, MPI_Comm c) {
  return MPI_Gather(from, n, size, to, m, s, 0, c);
}
static inline int MPI_Type_contiguous(int n, MPI_Datatype size, MPI_Datatype *made) { return *made = n * size, 0; }
static inline int MPI_Type_commit(MPI_Datatype *made) { return (void)made, 0; }
static inline int MPI_Type_free(MPI_Datatype *made) { return (void)made, 0; }
#endif
