// C++ enumerators and names. No variable in scope has their types: see tests/names.rs.
namespace paint {
enum Plain { Thin = 2, Thick = 5 };
enum class Colour : unsigned char { Red = 1, Green = 6 };
struct Brush {
  enum Shape { Round = 3, Flat = 9 };
  Shape shape;
  Colour colour;
  Plain plain;
};
int coats = 4;
int last ()
{
  static int kept = 64;
  return kept++;
}
}

volatile int sink;
paint::Brush brush = {paint::Brush::Flat, paint::Colour::Green, paint::Thick};

__attribute__ ((noinline)) void stop_here () { sink = sink + 1; }

namespace paint {
__attribute__ ((noinline)) int work (int coats_given)
{
  volatile int copy = coats_given;
  stop_here ();
  return copy + coats;
}
}

int main ()
{
  volatile int step = 7;
  return paint::work (step) + paint::last () == 0;
}
