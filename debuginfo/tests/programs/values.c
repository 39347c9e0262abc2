// Values of every kind that C has, in frames that stop in `stop`.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct point { int x, y; };
enum color { RED, GREEN = 5, BLUE = -3 };
enum flags { READ = 1, WRITE = 2, EXEC = 4 };
union either { int number; float real; unsigned char bytes[4]; };
typedef struct node { struct node *next; const char *name; int value; } node_t;
struct bits { unsigned a : 3; int b : 5; unsigned long long c : 40; unsigned d : 12; bool flag : 1; };
struct outer {
  struct point at;
  union { int i; float f; };
  struct bits bits;
  char name[16];
  int grid[2][3];
  int (*call) (int);
  struct point *points[2];
};

int global_number = 42;
static const char *global_text = "global \"text\"";
static struct point global_points[3] = {{1, 2}, {3, 4}, {5, 6}};
__thread int thread_number = 77;
static __thread struct point thread_point = {8, 9};

__attribute__ ((noipa)) void stop (void) { __asm__ volatile ("" ::: "memory"); }

static int twice (int n) { return n * 2; }

__attribute__ ((noinline)) int scalars (int first, double second)
{
  char c = 'q'; signed char sc = -7; unsigned char uc = 200;
  short s = -12345; unsigned short us = 54321;
  long l = -1234567890123L; unsigned long ul = 0xfedcba9876543210UL;
  float f = 1.1f; double d = -2.5e-7; long double ld = 0.1L;
  bool yes = true, no = false;
  enum color color = BLUE; enum flags both = READ | EXEC; enum flags odd = (enum flags) 9;
  __int128 wide = (__int128) 1 << 100;
  int64_t alias = -5; volatile int vol = 3;
  const char *text = "hello\n\tworld"; const char *null = 0;
  void *pointer = &global_number; int (*function) (int) = twice;
  stop ();
  return first + (int) second + c + sc + uc + s + us + (int) l + (int) ul + (int) f + (int) d
    + (int) ld + yes + no + color + both + odd + (int) (wide >> 90) + (int) alias + vol
    + (text != null) + (pointer != 0) + function (1);
}

__attribute__ ((noinline)) int aggregates (int n, struct point by_value)
{
  struct outer o;
  memset (&o, 0, sizeof o);
  o.at = by_value; o.i = 7;
  o.bits.a = 5; o.bits.b = -9; o.bits.c = 0x123456789aULL; o.bits.d = 0xabc; o.bits.flag = true;
  strcpy (o.name, "outer");
  for (int i = 0; i < 6; i++) o.grid[i / 3][i % 3] = i * n;
  o.call = twice; o.points[0] = &global_points[1];
  union either u = { .number = 0x3f800000 };
  node_t second = { 0, "second", 2 }, first = { &second, "first", 1 };
  int zeros[40] = {0}; int many[300]; for (int i = 0; i < 300; i++) many[i] = i;
  int vla[n]; for (int i = 0; i < n; i++) vla[i] = i + 100;
  char full[4] = {'a', 'b', 'c', 'd'};
  static int counter = 11;
  counter++;
  {
    int n = 99; int inner = 5;
    stop ();
    return o.i + u.number + first.value + zeros[0] + many[2] + vla[0] + full[0] + counter + n + inner;
  }
}

static inline __attribute__ ((always_inline)) int inlined (int a, struct point *p)
{
  int sum = a + p->x;
  stop ();
  return sum + p->y;
}

__attribute__ ((noinline)) int calls (int a, int b)
{
  struct point p = { a, b };
  int result = inlined (a * 3, &p);
  return result + p.x;
}

__attribute__ ((noinline)) int entry (int kept, int lost)
{
  int r = lost * 2;
  stop ();
  return r + kept;
}

int main (int argc, char **argv)
{
  int sum = scalars (argc, 2.5);
  sum += aggregates (5, (struct point) { 10, 20 });
  sum += calls (argc + 3, 9);
  sum += entry (sum, 31);
  printf ("%d %s %d\n", sum, global_text, thread_number + thread_point.x);
  return argv[0] == 0;
}
