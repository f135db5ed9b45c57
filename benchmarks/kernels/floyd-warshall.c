// All shortest paths, integers.
// floyd-warshall ROUNDS: the problem has one size, the work grows with the rounds.
#include <stdio.h>
#include <stdlib.h>

#define N 180

static int path[N][N];

static void initialise(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) path[i][j] = (i + j) % 13 == 0 || (i + j) % 7 == 0 || (i + j) % 11 == 0 ? 999 : i * j % 7 + 1;
}

static void kernel(void)
{
    for (int k = 0; k < N; k++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                int through = path[i][k] + path[k][j];
                path[i][j] = path[i][j] < through ? path[i][j] : through;
            }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    double total = 0;
    for (int round = 0; round < rounds; round++) {
        initialise();
        kernel();
        total += path[N / 2][N / 3];
    }
    printf("%.6e\n", total);
    return 0;
}
