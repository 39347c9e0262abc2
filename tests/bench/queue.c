// Usage: queue PUSHES [NESTING [wait]]. Calls push PUSHES times; its values are of all kinds: a global structure, a pointer's target,
// a string, parameters in registers and on the stack, and variables of a caller that is not recorded. `nested` calls itself NESTING
// deep before each thousandth push. With `wait` it does not exit by itself.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct item {
  long x;
  int y;
  const char *name;
};

struct queue {
  int len;
  double mean;
  struct item *first;
};

struct queue queue;
static const char *const names[] = {"alpha", "beta", "gamma", "delta"};

__attribute__((noinline, noclone)) long push(struct item *p, const char *name, long a, long b, long c, long d, long on_stack) {
  queue.len++;
  queue.first = p;
  p->x += on_stack;
  p->name = name;
  return p->x + a + b + c + d;
}

__attribute__((noinline, noclone)) long nested(long depth) {
  return depth > 0 ? nested(depth - 1) + 1 : 0;
}

__attribute__((noinline, noclone)) long fill(long pushes, long nesting) {
  volatile long local = 0;
  struct item item = {0, 7, "first"};
  for (long i = 0; i < pushes; i++) {
    local = local + 3;
    if (i % 1000 == 0) local = local + nested(nesting) - nesting;
    push(&item, names[i & 3], i, i, i, i, local);
  }
  return item.x + local;
}

int main(int argc, char **argv) {
  long pushes = argc > 1 ? atol(argv[1]) : 1000000;
  printf("%ld\n", fill(pushes, argc > 2 ? atol(argv[2]) : 0));
  fflush(stdout);
  if (argc > 3) pause();
  return 0;
}
