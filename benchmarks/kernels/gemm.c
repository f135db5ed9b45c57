// Matrix multiplication: C = alpha A B + beta C.
// gemm ROUNDS: the problem has one size, the work grows with the rounds.
#include <stdio.h>
#include <stdlib.h>

#define N 160

static double A[N][N], B[N][N], C[N][N];

static void initialise(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) A[i][j] = (double)(i * j % 7) / 7;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) B[i][j] = (double)(i * (j + 1) % 5) / 5;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) C[i][j] = (double)((i + j) % 3) / 3;
}

static void kernel(void)
{
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) C[i][j] *= 1.2;
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++) C[i][j] += 1.5 * A[i][k] * B[k][j];
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    double total = 0;
    for (int round = 0; round < rounds; round++) {
        initialise();
        kernel();
        total += C[N / 2][N / 3];
    }
    printf("%.6e\n", total);
    return 0;
}
