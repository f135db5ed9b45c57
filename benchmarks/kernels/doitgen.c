// A tensor times a matrix, with a temporary vector.
// doitgen ROUNDS: the problem has one size, the work grows with the rounds.
#include <stdio.h>
#include <stdlib.h>

#define N 50

static double A[N][N][N], C4[N][N], sum[N];

static void initialise(void)
{
    for (int r = 0; r < N; r++)
        for (int q = 0; q < N; q++)
            for (int p = 0; p < N; p++) A[r][q][p] = (double)((r * q + p) % N) / N;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) C4[i][j] = (double)(i * j % N) / N;
}

static void kernel(void)
{
    for (int r = 0; r < N; r++)
        for (int q = 0; q < N; q++) {
            for (int p = 0; p < N; p++) {
                sum[p] = 0;
                for (int s = 0; s < N; s++) sum[p] += A[r][q][s] * C4[s][p];
            }
            for (int p = 0; p < N; p++) A[r][q][p] = sum[p];
        }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    double total = 0;
    for (int round = 0; round < rounds; round++) {
        initialise();
        kernel();
        total += A[N / 2][N / 3][N / 4];
    }
    printf("%.6e\n", total);
    return 0;
}
