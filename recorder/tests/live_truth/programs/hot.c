/* A function of about a nanosecond, called as often as asked for, timed by itself. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

volatile long sum;

static double
now (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

__attribute__ ((noinline)) void
work (long i)
{
  sum += i;
}

int
main (int argc, char ** argv)
{
  long calls = atol (argv[1]);
  double begun = now ();
  for (long i = 0; i < calls; i++)
    work (i);
  fprintf (stderr, "%.1f", (now () - begun) / calls);
  printf ("%ld\n", sum);
  return argc > 9;
}
