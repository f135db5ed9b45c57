/* Short threads: `threads N LIVE` makes N of them, LIVE at a time, each of which adds to 64 numbers.
 *
 *     tracekit cc -O2 benchmarks/threads.c -o threads -pthread && time tracekit record ./threads 600 20 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int sums[64];

static void *work(void *number)
{
    for (int i = 0; i < 64; i++)
        sums[i] += (int)(long)number;
    return NULL;
}

int main(int count, char **arguments)
{
    const long total = count > 1 ? atol(arguments[1]) : 600, live = count > 2 ? atol(arguments[2]) : 20;
    pthread_t *threads = malloc((size_t)live * sizeof *threads);
    for (long made = 0; made < total; made += live) {
        for (long i = 0; i < live; i++)
            if (pthread_create(&threads[i], NULL, work, (void *)i))
                return 1;
        for (long i = 0; i < live; i++)
            pthread_join(threads[i], NULL);
    }
    printf("%d\n", sums[0] > 0);
    free(threads);
    return 0;
}
