// Parameters that clang removes: one that is always the same, and one that is not used.
#include <stdio.h>

#define NOINLINE __attribute__((noinline))

NOINLINE static int constant(int on, const char *what, int level) {
  printf("%s %d %d\n", what, on, level);
  return level;
}

NOINLINE static int unused(int first, int second, int third) {
  printf("%d %d\n", first, third);
  return third;
}

NOINLINE int exported(int first, int second, int third) {
  printf("%d %d\n", first, third);
  return third;
}

NOINLINE int all(int first, int second, int third) {
  printf("%d %d %d\n", first, second, third);
  return third;
}

int main(int count, char **words) {
  int sum = constant(count, "hi", 200) + constant(count + 1, "hi", 200);
  sum += unused(count, 5, count + 1) + unused(count + 3, 7, count + 2);
  sum += exported(count, 5, count + 1) + all(count, count * 2, count + 1);
  return sum == 0;
}
