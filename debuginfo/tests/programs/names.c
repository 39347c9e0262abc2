/* Names in scope and out of scope, and equal names in a library: see tests/names.rs. */
enum color { RED = 1, GREEN = 6, BLUE = 8 };
enum { UNNAMED = 12 };

static volatile int shared = 5;
volatile int sink;

int library_touch (int);
void stop_here (void);

__attribute__ ((noinline)) void
stop_here (void)
{
  sink++;
}

__attribute__ ((noinline)) int
idle (int unused)
{
  static int count = 41;
  count += unused;
  return count;
}

static inline __attribute__ ((always_inline)) int
inner (int depth)
{
  enum { LOCAL = 77 };
  volatile int own = depth * 2;
  stop_here ();
  return own + LOCAL;
}

__attribute__ ((noinline)) int
outer (int seed)
{
  volatile int token = seed + 100;
  volatile int shared = -1;
  int result = inner (seed);
  return result + token + shared;
}

int
main (void)
{
  static int calls = 3;
  volatile int step = 7;
  volatile int kind = RED | BLUE;
  calls += outer (step) > 0;
  return idle (library_touch (kind)) + shared + UNNAMED == 0 ? calls : 0;
}
