// Floating-point arguments that their functions no longer use after a call. The callers know their values.
__attribute__ ((noinline)) void stop (void) { __asm__ volatile ("" ::: "memory"); }

__attribute__ ((noinline)) double inner (double x, float y, long n)
{
  double sum = x + y + n;
  stop ();
  stop ();
  return sum;
}

__attribute__ ((noinline)) double outer (double x, float y, long n)
{
  double found = inner (x, y, n);
  stop ();
  return found + 1;
}

__attribute__ ((noinline)) double top (double x)
{
  double found = outer (x, 2.5f, 7);
  stop ();
  return found;
}

int main (void) { return top (1.25) == 3; }
