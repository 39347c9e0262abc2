// Values of every kind, read in the function that calls stop_here.
#include <cstddef>

enum Color { RED, GREEN = 5, BLUE = -3 };
enum class Level : unsigned char { Low = 1, High = 200 };

enum Kind { Near, Far };
Kind kind = Far;

namespace ns {
int counter = 42;
template <typename T> struct Pair {
  T first, second;
  static int made;
};
template <typename T> int Pair<T>::made = 3;
} // namespace ns

static int hidden = 9;
int zero = 0;

struct Inner {
  int x;
  unsigned bits : 3;
  int sbits : 5;
  char name[16];
};

struct Base {
  int base_value;
};

struct Node : Base {
  Node *next;
  long value;
  Inner in[3];
  union {
    int as_int;
    float as_float;
  };
  int work (int k);
};

extern "C" __attribute__ ((noinline)) void stop_here (void *) { asm volatile (""); }

int Node::work (int k)
{
  signed char c = -5;
  unsigned char uc = 250;
  short s = -300;
  unsigned short us = 60000;
  int i = -7;
  unsigned u = 4000000000u;
  long l = -1234567890123L;
  unsigned long ul = 18446744073709551610ul;
  __int128 wide = (__int128) 1 << 100;
  float f = 1.25f;
  double d = -2.5;
  bool yes = true;
  char letter = 'q';
  wchar_t broad = L'w';
  int arr[5] = { 10, 20, 30, 40, 50 };
  int grid[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
  int *p = arr + 1;
  int *end = arr + 5;
  int &ref = arr[3];
  const char *text = "hello";
  void *null = nullptr;
  Color color = GREEN;
  Level level = Level::High;
  ns::Pair<int> pair = { 11, 12 };
  Node *self = this;
  Node **pp = &self;
  int (*function) (int) = nullptr;
  {
    int i = 77;
    stop_here (&i);
  }
  stop_here (&i);
  return c + uc + s + us + i + u + l + ul + wide + f + d + yes + letter + broad + *p + *end + ref + grid[1][1] + (long) text
         + (long) null + color + (int) level + pair.first + (long) pp + (long) function + hidden + zero + k + ns::counter
         + ns::Pair<int>::made;
}

int main ()
{
  Node second = {}, first = {};
  first.base_value = 7;
  first.next = &second;
  first.value = 99;
  first.as_int = 0x40490fdb;
  second.value = -1;
  second.next = &first;
  for (int n = 0; n < 3; n++) {
    first.in[n].x = n * 100;
    first.in[n].bits = n + 4;
    first.in[n].sbits = -n - 1;
    first.in[n].name[0] = 'a' + n;
    first.in[n].name[1] = 'z';
  }
  return first.work (1234) == 0;
}
