// Cholesky decomposition in place.
// cholesky ROUNDS: the problem has one size, the work grows with the rounds.
#include <stdio.h>
#include <stdlib.h>

#define N 220

#include <math.h>
static double A[N][N];

static void initialise(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) A[i][j] = i == j ? 2.0 * N : (double)((i + j) % N) / N;
}

static void kernel(void)
{
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < i; j++) {
            for (int k = 0; k < j; k++) A[i][j] -= A[i][k] * A[j][k];
            A[i][j] /= A[j][j];
        }
        for (int k = 0; k < i; k++) A[i][i] -= A[i][k] * A[i][k];
        A[i][i] = sqrt(A[i][i]);
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    double total = 0;
    for (int round = 0; round < rounds; round++) {
        initialise();
        kernel();
        total += A[N / 2][N / 3];
    }
    printf("%.6e\n", total);
    return 0;
}
