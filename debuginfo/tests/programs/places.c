/* Functions of many shapes, for breakpoints on them: with arrays of variable length, which give their unit
   location lists, arguments of every class on the stack, large frames and small ones. */
#include <stdio.h>
#include <string.h>

struct big { long a, b, c, d; };
struct pair { int x, y; };

static int
twice(int x)
{
  return x * 2;
}

/* Nothing here. */

__attribute__((noinline)) int area(int width, int height)
{
  int all = width * height;

  /* Nor here. */

  return all;
}

__attribute__((noinline)) int sum(int n)
{
  int all[n];
  for (int i = 0; i < n; i++)
    all[i] = i;
  int s = 0;
  for (int i = 0; i < n; i++) s += all[i];
  return s;
}

__attribute__((noinline)) long many(int a, int b, int c, int d, int e, int f, int g, short h, long double ld,
    struct big bg, double x, __int128 w, char k, struct pair p, const char *text)
{
  long s = a + b + c + d + e + f + g + h + (long)ld + bg.a + bg.d + (long)x + (long)w + k;
  return s + p.x + p.y + (long)strlen(text);
}

__attribute__((noinline)) double scale(double a, float b, double c, double d, double e, double f, double g, double h,
    double i, float j)
{ return a * b + c + d + e + f + g + h + i + j; }

__attribute__((noinline)) struct pair pair(int x, int y)
{
  struct pair p = { x, y };
  return p;
}

__attribute__((noinline)) int fill(int n)
{
  char large[9000];
  memset(large, n, sizeof large);
  return large[n];
}

int loop(int n)
{
  int s = 0;
  for (int i = 0; i < n; i++) {
    if (i % 2)
      s += twice(i);
    else
      s -= i;
  }
  while (n-- > 0)
    s++;
  return s;
}
#if 0
int left_out(void) { return 1; }
#endif
typedef int (*callback)(int);
__attribute__((noinline)) int call(callback f, int x) { return f(x); }

int main(int argc, char **argv)
{
  struct big bg = { 1, 2, 3, 4 };
  struct pair p = pair(3, 4);
  printf("%d %d\n", area(3, 4), sum(argc + 4));
  printf("%ld\n", many(1, 2, 3, 4, 5, 6, 7, 8, 9.5L, bg, 2.5, 77, 'x', p, argv[argc] ? "argument" : "none"));
  printf("%f %d\n", scale(1.5, 2.0f, 3, 4, 5, 6, 7, 8, 9, 10), p.x + p.y);
  printf("%d %d %d\n", loop(10), call(twice, 4), fill(5));
  return 0;
}
