// Values of every kind that C++ adds, in frames that stop in `stop`.
#include <cstdio>

namespace ns {
struct Base { int base = 1; virtual ~Base () {} };
struct Left : virtual Base { int left = 2; };
struct Right : virtual Base { int right = 3; };
struct Both : Left, Right { int both = 4; };
struct Plain { int a = 1; };
struct Derived : Plain { int b = 2; static int count; static constexpr int limit = 9; };
int Derived::count = 5;
enum class Color : unsigned char { Red, Green = 4 };
enum Old { ONE = 1, TWO };
template <typename T, int N> struct Box { T items[N]; T *first = items; };
int counter = 3;
namespace { int hidden = 8; }
}
struct Fields { int a : 4; unsigned b : 9; };
static int counter = 30;

__attribute__ ((noipa)) void stop () { __asm__ volatile ("" ::: "memory"); }

struct Thing {
  int value = 6;
  __attribute__ ((noinline)) int method (int by)
  {
    int result = value * by;
    stop ();
    return result + value;
  }
};

__attribute__ ((noinline)) int objects (const ns::Derived &reference, ns::Plain &&moved)
{
  ns::Both both;
  ns::Base *base = &both;
  ns::Color color = ns::Color::Green;
  ns::Old old = ns::TWO;
  ns::Box<short, 3> box {{1, 2, 3}};
  Fields fields {-3, 300};
  int ns::Derived::*member = &ns::Derived::b;
  char16_t wide = u'x'; char32_t wider = U'y'; wchar_t w = L'z';
  bool yes = true;
  auto lambda = [yes, extra = 5] (int n) { return extra + n + yes; };
  decltype (nullptr) nothing = nullptr;
  int &alias = ns::counter;
  stop ();
  return reference.b + moved.a + both.base + base->base + (int) color + old + box.items[1] + fields.a
    + reference.*member + wide + wider + w + lambda (1) + (nothing == nullptr) + alias + counter + ns::hidden;
}

int main ()
{
  ns::Derived derived;
  Thing thing;
  int sum = objects (derived, ns::Plain ());
  sum += thing.method (7);
  std::printf ("%d %d\n", sum, ns::Derived::count + ns::hidden + counter);
  return 0;
}
