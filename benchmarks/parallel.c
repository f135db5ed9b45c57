/* Accesses under one of 64 mutexes, or beside an atomic counter: `parallel
 * THREADS ROUNDS mutex|atomic`. The rounds are shared out among the threads, so
 * that any number of them makes the same accesses. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 64, WORDS = 256, ACCESSES = 8 }; /* a load and a store each */

static struct {
  pthread_mutex_t lock;
  long words[WORDS];
} blocks[BLOCKS];
static _Atomic long taken;
static long rounds;
static int by_atomic;

static void *work(void *number) {
  unsigned random = 1 + (unsigned)(size_t)number;
  long own[WORDS] = {0};
  for (long round = 0; round < rounds; round++) {
    random = random * 1664525u + 1013904223u;
    int block = random >> 26, first = random >> 12 & (WORDS - ACCESSES - 1);
    long *words = by_atomic ? own : blocks[block].words;
    if (by_atomic)
      atomic_fetch_add(&taken, 1);
    else
      pthread_mutex_lock(&blocks[block].lock);
    for (int i = 0; i < ACCESSES; i++)
      words[first + i] += round;
    if (!by_atomic)
      pthread_mutex_unlock(&blocks[block].lock);
  }
  return NULL;
}

int main(int argc, char **argv) {
  int count = atoi(argv[1]);
  pthread_t threads[16];
  rounds = atol(argv[2]) / count;
  by_atomic = strcmp(argv[3], "atomic") == 0;
  for (int i = 0; i < BLOCKS; i++)
    pthread_mutex_init(&blocks[i].lock, NULL);
  for (int i = 0; i < count; i++)
    pthread_create(&threads[i], NULL, work, (void *)(size_t)i);
  for (int i = 0; i < count; i++)
    pthread_join(threads[i], NULL);
  return argc < 4;
}
