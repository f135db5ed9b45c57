/* Runs hypre's matrix and vector operations, and algebraic multigrid in several ways, and prints what they compute. */
#include "HYPRE.h"
#include "HYPRE_krylov.h"
#include "HYPRE_parcsr_ls.h"
#include "_hypre_parcsr_ls.h"
#include "_hypre_parcsr_mv.h"

static void show(const char *name, const double *values, int n) {
  double sum = 0, weighted = 0;
  for (int i = 0; i < n; i++)
    sum += values[i], weighted += values[i] * (i % 7);
  printf("%s %.6g %.6g\n", name, sum, weighted);
}

static hypre_Vector *vector(int size, int vectors, int seed) {
  hypre_Vector *made = hypre_SeqMultiVectorCreate(size, vectors);
  hypre_SeqVectorInitialize(made);
  for (int i = 0; i < size * vectors; i++)
    hypre_VectorData(made)[i] = (double)(i * 7919 % (101 + seed)) / 100 + 0.1;
  return made;
}

/* A matrix of the Laplacian on n * n points; if `gaps`, some rows are empty. */
static hypre_CSRMatrix *matrix(int n, int gaps) {
  int rows = n * n, k = 0;
  hypre_CSRMatrix *made = hypre_CSRMatrixCreate(rows, rows, 5 * rows);
  hypre_CSRMatrixInitialize(made);
  int *begin = hypre_CSRMatrixI(made), *column = hypre_CSRMatrixJ(made);
  double *value = hypre_CSRMatrixData(made);
  for (int i = 0; i < rows; i++) {
    begin[i] = k;
    if (gaps && i % 5)
      continue;
    column[k] = i, value[k++] = 4 + i % 3;
    if (i % n)
      column[k] = i - 1, value[k++] = -1;
    if (i % n < n - 1)
      column[k] = i + 1, value[k++] = -1;
    if (i >= n)
      column[k] = i - n, value[k++] = -1;
    if (i < rows - n)
      column[k] = i + n, value[k++] = -1;
  }
  begin[rows] = k;
  hypre_CSRMatrixNumNonzeros(made) = k;
  hypre_CSRMatrixSetRownnz(made);
  return made;
}

static void products(int n, int vectors, int gaps) {
  static const double factors[][2] = {{1, 0}, {1, 1}, {1, -1}, {1, 0.5}, {-1, 0}, {-1, 1}, {-1, -1}, {-1, 0.5},
                                      {0.5, 0}, {0.5, 1}, {0.5, -1}, {0.5, 0.3}, {0, 0.7}};
  hypre_CSRMatrix *a = matrix(n, gaps);
  int rows = n * n;
  for (unsigned k = 0; k < sizeof factors / sizeof *factors; k++) {
    hypre_Vector *x = vector(rows, vectors, 1), *y = vector(rows, vectors, 2), *z = vector(rows, vectors, 3);
    hypre_CSRMatrixMatvec(factors[k][0], a, x, factors[k][1], y);
    show("A x", hypre_VectorData(y), rows * vectors);
    hypre_CSRMatrixMatvecT(factors[k][0], a, x, factors[k][1], y);
    show("A^T x", hypre_VectorData(y), rows * vectors);
    hypre_CSRMatrixMatvecOutOfPlace(factors[k][0], a, x, factors[k][1], y, z, 0);
    show("z", hypre_VectorData(z), rows * vectors);
    hypre_SeqVectorDestroy(x), hypre_SeqVectorDestroy(y), hypre_SeqVectorDestroy(z);
  }
  hypre_CSRMatrix *t, *b = matrix(n, 0), *sum = hypre_CSRMatrixAdd(1.0, a, 2.0, b), *c = hypre_CSRMatrixMultiply(a, b);
  hypre_CSRMatrixTranspose(c, &t, 1);
  show("A + B", hypre_CSRMatrixData(sum), hypre_CSRMatrixNumNonzeros(sum));
  show("(A B)^T", hypre_CSRMatrixData(t), hypre_CSRMatrixNumNonzeros(t));
}

static void vectors(int size) {
  hypre_Vector *y[16];
  double got[16], more[16], alpha[16];
  for (int i = 0; i < 16; i++)
    y[i] = vector(size, 1, i), alpha[i] = 0.1 * (i + 1);
  hypre_Vector *x = vector(size, 1, 20), *z = vector(size, 1, 21);
  for (int unroll = 0; unroll <= 8; unroll += 4)
    for (int k = 1; k <= 16; k++) {
      hypre_SeqVectorMassInnerProd(x, y, k, unroll, got);
      show("mass inner", got, k);
      hypre_SeqVectorMassDotpTwo(x, z, y, k, unroll, got, more);
      show("mass dot", got, k), show("mass dot", more, k);
      hypre_SeqVectorMassAxpy(alpha, y, x, k, unroll);
      hypre_SeqVectorScale(0.01, x);
      show("mass axpy", hypre_VectorData(x), size);
    }
  hypre_SeqVectorSetConstantValues(z, 0.25);
  hypre_SeqVectorAxpy(0.3, x, z);
  hypre_SeqVectorCopy(z, y[3]);
  hypre_SeqVectorElmdivpy(x, y[1], z);
  show("vector", hypre_VectorData(z), size);
  printf("%.6g %.6g\n", hypre_SeqVectorInnerProd(x, z), hypre_SeqVectorSumElts(y[3]));
}

static void multigrid(int n, int coarsening, int interpolation, int relaxation, int aggressive) {
  HYPRE_Int rows[3] = {n, n, n}, procs[3] = {1, 1, 1}, place[3] = {0, 0, 0};
  HYPRE_Real values[4] = {6, -1, -1, -1};
  hypre_ParCSRMatrix *a = (hypre_ParCSRMatrix *)GenerateLaplacian(hypre_MPI_COMM_WORLD, rows[0], rows[1], rows[2],
                                                                  procs[0], procs[1], procs[2], place[0], place[1],
                                                                  place[2], values);
  int size = n * n * n;
  hypre_ParVector *b = hypre_ParVectorCreate(hypre_MPI_COMM_WORLD, size, hypre_ParCSRMatrixRowStarts(a));
  hypre_ParVector *x = hypre_ParVectorCreate(hypre_MPI_COMM_WORLD, size, hypre_ParCSRMatrixRowStarts(a));
  hypre_ParVectorInitialize(b), hypre_ParVectorInitialize(x);
  for (int i = 0; i < size; i++)
    hypre_VectorData(hypre_ParVectorLocalVector(b))[i] = 1 + i % 5;
  hypre_ParVectorSetConstantValues(x, 0);
  HYPRE_Solver solver;
  HYPRE_BoomerAMGCreate(&solver);
  HYPRE_BoomerAMGSetCoarsenType(solver, coarsening);
  HYPRE_BoomerAMGSetInterpType(solver, interpolation);
  HYPRE_BoomerAMGSetRelaxType(solver, relaxation);
  HYPRE_BoomerAMGSetAggNumLevels(solver, aggressive);
  HYPRE_BoomerAMGSetMaxIter(solver, 5);
  HYPRE_BoomerAMGSetTol(solver, 0);
  HYPRE_BoomerAMGSetup(solver, (HYPRE_ParCSRMatrix)a, (HYPRE_ParVector)b, (HYPRE_ParVector)x);
  HYPRE_BoomerAMGSolve(solver, (HYPRE_ParCSRMatrix)a, (HYPRE_ParVector)b, (HYPRE_ParVector)x);
  char name[80];
  snprintf(name, sizeof name, "multigrid %d %d %d %d", coarsening, interpolation, relaxation, aggressive);
  show(name, hypre_VectorData(hypre_ParVectorLocalVector(x)), size);
  HYPRE_BoomerAMGDestroy(solver);
}

int main(void) {
  HYPRE_Init();
  products(12, 1, 0), products(9, 1, 1), products(7, 3, 0), products(6, 2, 1), products(6, 4, 0);
  vectors(90);
  multigrid(6, 10, 6, 18, 0), multigrid(6, 8, 0, 7, 0), multigrid(5, 3, 3, 6, 0), multigrid(6, 10, 4, 16, 1);
  multigrid(5, 0, 8, 3, 0), multigrid(5, 6, 12, 13, 1), multigrid(5, 10, 14, 8, 0), multigrid(5, 8, 2, 0, 0);
  multigrid(5, 10, 13, 11, 2), multigrid(5, 10, 100, 17, 0), multigrid(5, 10, 7, 4, 0);
  return 0;
}
