// Thread-local variables of each linkage, in a program or, with LIBRARY, in a library.
_Thread_local int first = 44;
static _Thread_local long second = 45;
_Thread_local int list[3] = {7, 8, 9};

void stop (void) { __asm__ volatile ("" ::: "memory"); }

int work (int n)
{
  static _Thread_local int inner = 46;
  inner += n;
  first += 100;
  stop ();
  return first + second + list[1] + inner;
}

#ifndef LIBRARY
int main (void) { return work (1) == 0; }
#endif
