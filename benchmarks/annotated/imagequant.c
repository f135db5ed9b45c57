/* Finds palettes for a made-up picture, and prints them and a sum over the picture in them. */
#include "libimagequant.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int width = argc > 1 ? atoi(argv[1]) : 96, height = width * 3 / 4;
  unsigned char *pixels = malloc((size_t)width * (size_t)height * 4), *out = malloc((size_t)width * (size_t)height);
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      unsigned char *p = pixels + (y * width + x) * 4;
      p[0] = (unsigned char)(x * 3 + y), p[1] = (unsigned char)(x * y / 7), p[2] = (unsigned char)(x * x + y * 5);
      p[3] = (unsigned char)(x % 9 ? 255 : 255 - y);
    }
  for (int round = 0; round < 2; round++) {
    liq_attr *attributes = liq_attr_create();
    liq_set_max_colors(attributes, round ? 40 : 200);
    liq_set_speed(attributes, round ? 8 : 3);
    liq_image *image = liq_image_create_rgba(attributes, pixels, width, height, 0);
    liq_result *result;
    if (liq_image_quantize(image, attributes, &result) != LIQ_OK)
      return 1;
    liq_set_dithering_level(result, (float)round);
    liq_write_remapped_image(result, image, out, (size_t)width * (size_t)height);
    const liq_palette *palette = liq_get_palette(result);
    unsigned sum = 0;
    for (int i = 0; i < width * height; i++)
      sum = sum * 31 + out[i];
    printf("%u colors, sum %u\n", palette->count, sum);
    for (unsigned i = 0; i < palette->count; i++)
      printf("%d %d %d %d\n", palette->entries[i].r, palette->entries[i].g, palette->entries[i].b,
             palette->entries[i].a);
    liq_result_destroy(result), liq_image_destroy(image), liq_attr_destroy(attributes);
  }
  return 0;
}
