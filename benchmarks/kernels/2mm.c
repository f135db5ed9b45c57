// Two matrix multiplications: D = A B C + D.
// 2mm ROUNDS: the problem has one size, the work grows with the rounds.
#include <stdio.h>
#include <stdlib.h>

#define N 120

static double A[N][N], B[N][N], C[N][N], D[N][N], tmp[N][N];

static void initialise(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) A[i][j] = (double)((i * j + 1) % 9) / 9;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) B[i][j] = (double)(i * (j + 1) % 5) / 5;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) C[i][j] = (double)((i * (j + 3) + 1) % 7) / 7;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) D[i][j] = (double)(i * (j + 2) % 11) / 11;
}

static void kernel(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            tmp[i][j] = 0;
            for (int k = 0; k < N; k++) tmp[i][j] += 1.5 * A[i][k] * B[k][j];
        }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            D[i][j] *= 1.2;
            for (int k = 0; k < N; k++) D[i][j] += tmp[i][k] * C[k][j];
        }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    double total = 0;
    for (int round = 0; round < rounds; round++) {
        initialise();
        kernel();
        total += D[N / 2][N / 3];
    }
    printf("%.6e\n", total);
    return 0;
}
