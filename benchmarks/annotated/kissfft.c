/* Transforms made-up signals of several lengths, and prints sums over their spectra. */
#include "kiss_fft.h"

#include <stdio.h>

int main(void) {
  static const int lengths[] = {240, 256, 486, 1000, 1210};
  for (unsigned k = 0; k < sizeof lengths / sizeof *lengths; k++) {
    int n = lengths[k];
    static kiss_fft_cpx in[2000], out[2000];
    for (int i = 0; i < n; i++)
      in[i].r = (float)(i * 7919 % 1009) / 1009, in[i].i = (float)(i * 31 % 97) / 97;
    kiss_fft_cfg plan = kiss_fft_alloc(n, (int)k % 2, NULL, NULL);
    kiss_fft(plan, in, out);
    double re = 0, im = 0;
    for (int i = 0; i < n; i++)
      re += out[i].r * (i % 5), im += out[i].i * (i % 3);
    printf("%d %.4g %.4g %.4g\n", n, re, im, out[n / 2].r);
    kiss_fft_free(plan);
  }
  return 0;
}
