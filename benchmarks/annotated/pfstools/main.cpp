// Maps a made-up picture of high contrast by Mantiuk's operator, and prints sums over the result.
#include "contrast_domain.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv) {
  int columns = argc > 1 ? std::atoi(argv[1]) : 48, rows = columns * 3 / 4, n = columns * rows;
  for (int round = 0; round < 3; round++) {
    std::vector<float> r(n), g(n), b(n), y(n);
    for (int i = 0; i < n; i++) {
      float base = std::exp(static_cast<float>(i % columns) / columns * 6 + (i * 7919 % 101) / 200.0f);
      r[i] = base, g[i] = base * 0.8f + 1, b[i] = base * 0.5f + i % 3, y[i] = 0.2f * r[i] + 0.7f * g[i] + 0.1f * b[i];
    }
    int end = tmo_mantiuk06_contmap(columns, rows, r.data(), g.data(), b.data(), y.data(), round ? 0.3f : -0.5f, 0.8f,
                                    round == 2, 30, 1e-3f);
    double sum = 0, weighted = 0;
    for (int i = 0; i < n; i++)
      sum += r[i] + g[i] + b[i], weighted += r[i] * (i % 7);
    std::printf("%d %.4g %.4g %.3g\n", end, sum, weighted, y[n / 2]);
  }
  return 0;
}
