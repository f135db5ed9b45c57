// A transposed times A times a vector.
// atax ROUNDS: the problem has one size, the work grows with the rounds.
#include <stdio.h>
#include <stdlib.h>

#define N 500

static double A[N][N], x[N], y[N], tmp[N];

static void initialise(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) A[i][j] = (double)((i + j) % N) / (5 * N);
    for (int i = 0; i < N; i++) x[i] = 1 + (double)i / N;
}

static void kernel(void)
{
    for (int i = 0; i < N; i++) y[i] = 0;
    for (int i = 0; i < N; i++) {
        tmp[i] = 0;
        for (int j = 0; j < N; j++) tmp[i] += A[i][j] * x[j];
        for (int j = 0; j < N; j++) y[j] += A[i][j] * tmp[i];
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    double total = 0;
    for (int round = 0; round < rounds; round++) {
        initialise();
        kernel();
        total += y[N / 3];
    }
    printf("%.6e\n", total);
    return 0;
}
