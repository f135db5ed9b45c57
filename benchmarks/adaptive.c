/* Alleria's section 5.4: twelve threads, one started after another every SECONDS. The first eight each access a place in
 * memory ten million times, the other four each write 50 KB to a file: `adaptive SECONDS FOLDER`. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 12, WRITERS = 4, ACCESSES = 10000000, BYTES = 50 << 10 };

static volatile long places[THREADS][16];
static const char *folder;

/* A call, so that a record is written for each access: a loop of its own would
 * be one. */
__attribute__((noinline)) static void touch(volatile long *place, long value) {
  if (value & 1)
    *place = value;
  else
    *place += value;
}

static void *access_memory(void *number) {
  for (long access = 0; access < ACCESSES; access++)
    touch(places[(size_t)number], access);
  return NULL;
}

static void *write_file(void *number) {
  char name[4096];
  snprintf(name, sizeof name, "%s/%zu", folder, (size_t)number);
  FILE *file = fopen(name, "wb");
  for (long byte = 0; file && byte < BYTES; byte++)
    fputc((int)byte, file);
  if (file)
    fclose(file);
  return NULL;
}

int main(int count, char **arguments) {
  pthread_t threads[THREADS];
  if (count != 3)
    return 2;
  double seconds = atof(arguments[1]);
  struct timespec pause = {(time_t)seconds,
                           (long)((seconds - (long)seconds) * 1e9)};
  folder = arguments[2];
  for (size_t number = 0; number < THREADS; number++) {
    pthread_create(&threads[number], NULL,
                   number < THREADS - WRITERS ? access_memory : write_file,
                   (void *)number);
    nanosleep(&pause, NULL);
  }
  for (size_t number = 0; number < THREADS; number++)
    pthread_join(threads[number], NULL);
}
