/* Numbers of every format, and arrays whose last index has all bits of its form. */
#include <stdlib.h>
#include <string.h>

typedef struct { char tag; __float128 value; } tagged;

__attribute__((noinline)) void stop(void) { __asm__ volatile(""); }

static void rest(void) {}

int main(void) {
  __float128 quad = (__float128)2 / 3;
  _Float128 small = (_Float128)1 / 1024;
  _Float64x extended = (_Float64x)2 / 3;
  long double long_double = 2.0L / 3;
  _Float32 single = 0.5f32;
  _Float16 half = 1.5f16;
  _Complex _Float128 quad_pair = 0.25f128;
  _Complex double pair = 0.5;
  _Decimal32 d32 = 1.50DF;
  _Decimal64 d64 = -123.456DD;
  _Decimal128 d128 = 1e20DL;
  tagged held = {'t', (__float128)1 / 4};
  char text[256] = "a text in 256 bytes";
  unsigned char bytes[256] = {1, 2, 3};
  short many[65536] = {7};
  int row[3][256];
  memset(row, 0, sizeof row);
  row[2][255] = 9;
  stop();
  rest();
  return many[0] + row[2][255] - bytes[2] + (int)quad + (int)small + (int)extended + (int)long_double + (int)single +
         (int)half + (int)d32 + (int)d64 + (int)d128 + (int)held.value + text[0] + (int)__real__ quad_pair +
         (int)__real__ pair;
}
