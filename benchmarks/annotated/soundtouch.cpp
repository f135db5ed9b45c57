// Stretches and shifts a made-up sound, guesses its tempo, and prints sums over the result.
#include "BPMDetect.h"
#include "SoundTouch.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace soundtouch;

int main(int argc, char **argv) {
  int frames = argc > 1 ? std::atoi(argv[1]) : 12000;
  for (int channels = 1; channels <= 3; channels++) {
    std::vector<SAMPLETYPE> sound(static_cast<size_t>(frames) * channels);
    for (int i = 0; i < frames; i++)
      for (int c = 0; c < channels; c++)
        sound[i * channels + c] = static_cast<SAMPLETYPE>((std::sin(i * 0.05 * (c + 1)) + (i % 4000 < 200)) * 0.4);
    SoundTouch stretch;
    stretch.setSampleRate(8000);
    stretch.setChannels(channels);
    stretch.setTempo(1.3);
    stretch.setPitchSemiTones(channels == 2 ? 3 : -4);
    stretch.setSetting(SETTING_USE_AA_FILTER, 1);
    stretch.putSamples(sound.data(), frames);
    stretch.flush();
    std::vector<SAMPLETYPE> out(sound.size());
    unsigned got = stretch.receiveSamples(out.data(), frames);
    double sum = 0, weighted = 0;
    for (unsigned i = 0; i < got * channels; i++)
      sum += out[i], weighted += out[i] * (i % 13);
    BPMDetect tempo(channels, 8000);
    tempo.inputSamples(sound.data(), frames);
    std::printf("%d channels: %u samples, %.5g %.5g, %.4g beats\n", channels, got, sum, weighted, tempo.getBpm());
  }
  return 0;
}
