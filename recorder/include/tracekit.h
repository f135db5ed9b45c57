/* tracekit.h: windows that a program opens and closes by itself (tracekit
 * record --paused).
 *
 * Nothing has to be linked: without `tracekit cc`, or not under `record
 * --paused`, the calls do nothing. Windows nest: recording ends with the close
 * that belongs to the first open. */
#ifndef TRACEKIT_H
#define TRACEKIT_H

#ifdef __cplusplus
extern "C" {
#endif

void __tk_window(int open) __attribute__((weak, visibility("hidden")));

static inline void tracekit_window_open(void) {
  if (__tk_window)
    __tk_window(1);
}

static inline void tracekit_window_close(void) {
  if (__tk_window)
    __tk_window(0);
}

#define TRACEKIT_ON() tracekit_window_open()
#define TRACEKIT_OFF() tracekit_window_close()

#ifdef __cplusplus
}
#endif

#endif
