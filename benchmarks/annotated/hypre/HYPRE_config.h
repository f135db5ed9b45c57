/* What hypre's configuration would have said: one process, its own linear algebra. */
#define HYPRE_SEQUENTIAL 1
#define HYPRE_USING_HOST_MEMORY 1
#define HYPRE_USING_HYPRE_BLAS 1
#define HYPRE_USING_HYPRE_LAPACK 1
#define HYPRE_FC_FUNC(name, NAME) name##_
#define HYPRE_FC_FUNC_(name, NAME) name##_
#define HYPRE_MAXDIM 3
#define HYPRE_RELEASE_NAME "hypre"
#define HYPRE_RELEASE_VERSION "2"
#define HYPRE_RELEASE_NUMBER 20000
#define HYPRE_RELEASE_DATE "2022"
#define HYPRE_RELEASE_TIME "0"
#define HYPRE_RELEASE_BUGS "none"
