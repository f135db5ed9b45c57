// Nine-point stencil in place: every iteration depends on its neighbours.
// seidel-2d ROUNDS: the problem has one size, the work grows with the rounds.
#include <stdio.h>
#include <stdlib.h>

#define N 250

static double A[N][N];

static void initialise(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) A[i][j] = ((double)i * (j + 2) + 2) / N;
}

static void kernel(void)
{
    for (int t = 0; t < 10; t++)
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++)
                A[i][j] = (A[i - 1][j - 1] + A[i - 1][j] + A[i - 1][j + 1] + A[i][j - 1] + A[i][j] + A[i][j + 1]
                           + A[i + 1][j - 1] + A[i + 1][j] + A[i + 1][j + 1]) / 9;
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
