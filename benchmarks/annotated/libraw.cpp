// Develops a made-up raw picture in several ways, and prints sums over the results.
#include "libraw/libraw.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv) {
  int width = argc > 1 ? std::atoi(argv[1]) : 64, height = width * 3 / 4;
  std::vector<ushort> sensor(static_cast<size_t>(width) * height);
  for (int i = 0; i < width * height; i++)
    sensor[i] = static_cast<ushort>(200 + i % width * 40 + i / width * 13 + i * 7919 % 211);
  static const struct {
    int quality;
    float threshold;
  } ways[] = {{11, 0}, {3, 150}, {2, 0}, {12, 0}, {4, 0}, {1, 0}};
  for (const auto &way : ways) {
    LibRaw raw;
    raw.imgdata.params.user_qual = way.quality;
    raw.imgdata.params.threshold = way.threshold;
    raw.imgdata.params.use_camera_wb = 0;
    raw.imgdata.params.no_auto_bright = 1;
    raw.imgdata.params.highlight = way.quality == 3 ? 2 : 0;
    int end = raw.open_bayer(reinterpret_cast<unsigned char *>(sensor.data()), sensor.size() * 2, width, height, 0, 0,
                             0, 0, 0, LIBRAW_OPENBAYER_RGGB, 0, 0, 64);
    if (end || (end = raw.unpack()) || (end = raw.dcraw_process()))
      return std::printf("%d: %s\n", way.quality, libraw_strerror(end)), 1;
    libraw_processed_image_t *image = raw.dcraw_make_mem_image(&end);
    unsigned sum = 0;
    for (unsigned i = 0; i < image->data_size; i++)
      sum = sum * 31 + image->data[i];
    std::printf("%d: %d x %d, %u\n", way.quality, image->width, image->height, sum);
    LibRaw::dcraw_clear_mem(image);
  }
  return 0;
}
