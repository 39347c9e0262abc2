// Realigned frames, with parameters in registers and on the stack.
long plain (int a, int b, int c, int d, int e, int f, int g, short h, long double ld)
{
  volatile char local[48];
  local[a] = g;
  return local[a] + b + c + d + e + f + h + (long) ld;
}

long aligned (int a, int b, int c, int d, int e, int f, int g, short h, long double ld)
{
  _Alignas (64) volatile int local[32];
  local[a] = g;
  return local[a] + b + c + d + e + f + h + (long) ld;
}

long sized (int a, int b, int c, int d, int e, int f, int g, short h, long double ld)
{
  _Alignas (64) volatile int local[32];
  volatile int more[a];
  more[0] = g;
  local[a] = more[0];
  return local[a] + b + c + d + e + f + h + (long) ld;
}

int main (void)
{
  return plain (1, 2, 3, 4, 5, 6, 7, 8, 9.5L) + aligned (1, 2, 3, 4, 5, 6, 7, 8, 9.5L)
    + sized (1, 2, 3, 4, 5, 6, 7, 8, 9.5L) == 0;
}
