/* Structures in two registers, of which functions use one half. */
#define NOINLINE __attribute__((noinline))
struct pair { long first; long second; };

NOINLINE long uses_first(struct pair pair, int after) { return pair.first * 3 + after; }
NOINLINE long uses_second(struct pair pair, int after) { return pair.second * 5 + after; }
NOINLINE long uses_both(struct pair pair, int after) { return pair.first - pair.second + after; }
/* The wide number does not fit into the last register. */
NOINLINE long wide(int a, int b, int c, int d, int e, __int128 f, int g) { return a + b + c + d + e + (long)f + g; }

int main(int argc, char **argv) {
  struct pair pair = {argc, argc + 1};
  (void)argv;
  return (int)(uses_first(pair, 1) + uses_second(pair, 2) + uses_both(pair, 3) + wide(1, 2, 3, 4, 5, argc, 7));
}
