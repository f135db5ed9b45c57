/* Runs HPCC's STREAM and its two Fourier transforms in one process, and prints what they compute. */
#include <hpcc.h>

#include "FFT/hpccfft.h"
#include "FFT/wrapmpifftw.h"

double *HPCC_fft_timings_forward, *HPCC_fft_timings_backward;

int HPCC_LocalVectorSize(HPCC_Params *params, int vectors, size_t size, int pow2) {
  (void)vectors, (void)size, (void)pow2;
  return params->StreamVectorSize;
}

static void show(const char *name, fftw_complex *values, int n) {
  double sums[4] = {0, 0, 0, 0};
  for (int i = 0; i < n; i++) {
    sums[0] += c_re(values[i]), sums[1] += c_im(values[i]);
    sums[2] += c_re(values[i]) * (i % 7), sums[3] += c_im(values[i]) * (i % 11);
  }
  printf("%s %.9g %.9g %.9g %.9g %.9g %.9g\n", name, sums[0], sums[1], sums[2], sums[3], c_re(values[1]),
         c_im(values[n - 1]));
}

int main(int argc, char **argv) {
  static HPCC_Params params;
  HPCC_fft_timings_forward = params.MPIFFTtimingsForward;
  HPCC_fft_timings_backward = params.MPIFFTtimingsBackward;
  double rates[4];
  int failure = 1, n = argc > 1 ? atoi(argv[1]) : 1440;
  params.StreamVectorSize = n;
  HPCC_Stream(&params, 0, MPI_COMM_WORLD, 0, rates, rates + 1, rates + 2, rates + 3, &failure);
  printf("stream %d\n", failure);
  fftw_complex *in = malloc(sizeof *in * (size_t)n * 2), *out = malloc(sizeof *out * (size_t)n * 2);
  for (int k = -1; k < 2; k += 2) {
    for (int i = 0; i < n; i++)
      c_re(in[i]) = i * 7919 % 1009 / 1009.0, c_im(in[i]) = i * 104729 % 997 / 997.0;
    hpcc_fftw_plan plan = HPCC_fftw_create_plan(n, k < 0 ? FFTW_FORWARD : FFTW_BACKWARD, FFTW_ESTIMATE);
    HPCC_fftw_one(plan, in, out);
    HPCC_fftw_destroy_plan(plan);
    show(k < 0 ? "forward" : "backward", out, n);
    hpcc_fftw_mpi_plan whole = HPCC_fftw_mpi_create_plan(MPI_COMM_WORLD, n, k < 0 ? FFTW_FORWARD : FFTW_BACKWARD, 0);
    HPCC_fftw_mpi(whole, 1, in, out);
    HPCC_fftw_mpi_destroy_plan(whole);
    show("whole", in, n);
  }
  return 0;
}
