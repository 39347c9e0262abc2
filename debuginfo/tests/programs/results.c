// Results and halves of structures that clang removes from local functions because no caller uses them.
#include <stdio.h>

#define NOINLINE __attribute__((noinline))
struct wide { int a, b; long c; };
struct pair { long first, second; };
struct point { double x, y; };
volatile int sink;
int made;

NOINLINE static int ignored(int k) { sink = k; if (k > 1) { made++; return -1; } return 0; }
NOINLINE static int taken(int k) { sink = k; return k * 3 + sink; }
NOINLINE static int *pointer(int k) { sink = k; made = k; int *p = &made; sink = *p + 1; return p; }
NOINLINE static double ignored_double(double x) { sink = (int)x; return x * 2 + sink; }
NOINLINE static double taken_double(double x) { sink = (int)x; return x * 2 + sink; }
NOINLINE static long double ignored_long(long double x) { sink = (int)x; return x * 2 + sink; }
NOINLINE static long double taken_long(long double x) { sink = (int)x; return x * 2 + sink; }
/* Its result goes up through one that nobody uses, and through one that somebody does. */
NOINLINE static int below(int k) { sink = k; return k + sink; }
NOINLINE static int passes(int k) { sink = k; int got = below(k); sink = 2; return got; }
NOINLINE static int below_used(int k) { sink = k; return k + sink; }
NOINLINE static int passes_used(int k) { sink = k; return below_used(k + 1); }
NOINLINE static struct pair first_used(long k) { sink = k; return (struct pair){k + sink, k * 2 + sink}; }
NOINLINE static struct pair second_used(long k) { sink = k; return (struct pair){k + sink, k * 2 + sink}; }
NOINLINE static struct pair both_used(long k) { sink = k; return (struct pair){k + sink, k * 2 + sink}; }
NOINLINE static int by_address(int k) { sink = k; return k * 5 + sink; }
NOINLINE int exported(int k) { sink = k; return k * 7 + sink; }
NOINLINE static struct wide part(struct wide wide, int k) { sink = wide.a; wide.a += k; wide.c = k; return wide; }
NOINLINE static int late(struct pair pair, int k) { sink = k; return (int)pair.second + k; }
NOINLINE static double slope(struct point p, double w, int k) { sink = k; return p.y * w; }
NOINLINE static int changed(int first, int second, int third) { sink = third; if (third > 9) { first = sink; sink = first + 1; } return second; }
NOINLINE static int many(int a, int b, int c, int d, int e, int f, int g, int h) {
  sink = a; sink = b; sink = c; sink = d; sink = e; sink = f; sink = g; return h;
}
/* A loop behind the call uses the result only then. */
NOINLINE static int after_loop(int k) { sink = k; return k + sink; }

int main(int argc, char **argv) {
  (void)argv;
  int (*volatile by)(int) = by_address;
  ignored(argc); ignored(argc + 1); ignored(argc + 2);
  int sum = taken(argc);
  taken(argc + 1);
  pointer(argc + 40);
  ignored_double(argc + 1.5);
  sum += (int)taken_double(argc + 2.5);
  ignored_long(argc + 1.5L);
  sum += (int)taken_long(argc + 2.5L);
  passes(argc);
  sum += passes_used(argc);
  sum += (int)first_used(argc).first + (int)second_used(argc).second;
  struct pair both = both_used(argc);
  sum += (int)(both.first * both.second);
  sum += by(argc);
  exported(argc);
  struct wide wide = {5 + argc, 6, 7};
  wide = part(wide, argc + 2);
  sum += wide.a;
  sum += late((struct pair){argc, argc + 1}, argc + 3);
  sum += (int)slope((struct point){argc + 0.5, argc + 0.25}, argc + 10., argc + 20);
  sum += changed(argc, argc + 1, argc + 2) + changed(argc + 5, argc + 6, argc + 12);
  sum += many(1 + argc, 2 + argc, 3 + argc, 4 + argc, 5 + argc, 6 + argc, 7 + argc, 8 + argc);
  int kept = after_loop(argc);
  while (sink > 0) sink = sink - 1;
  printf("%d\n", sum + kept);
  return 0;
}
