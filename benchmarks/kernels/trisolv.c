// Forward substitution with a triangular matrix.
// trisolv ROUNDS: the problem has one size, the work grows with the rounds.
#include <stdio.h>
#include <stdlib.h>

#define N 600

static double L[N][N], x[N], b[N];

static void initialise(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) L[i][j] = (double)(i + N - j + 1) * 2 / N;
    for (int i = 0; i < N; i++) b[i] = i;
}

static void kernel(void)
{
    for (int i = 0; i < N; i++) {
        x[i] = b[i];
        for (int j = 0; j < i; j++) x[i] -= L[i][j] * x[j];
        x[i] /= L[i][i];
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    double total = 0;
    for (int round = 0; round < rounds; round++) {
        initialise();
        kernel();
        total += x[N / 3] * 1e-9;
    }
    printf("%.6e\n", total);
    return 0;
}
