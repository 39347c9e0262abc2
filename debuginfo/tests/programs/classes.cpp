// Classes at the edges of "trivial for the purposes of calls", and those of the standard library.
#include "tell.h"

#include <array>
#include <chrono>
#include <complex>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

// Larger than two words: passed by value in memory.
struct Large { long a, b, c; };
struct LargeFloats { double a[3]; };
struct Packed { char c; long l; } __attribute__ ((packed));
struct Mixed { float f; int i; double d; };
struct Bits { unsigned a : 3; unsigned b : 29; long c : 40; };
// A template is never a copy constructor.
struct CopiesTemplate { long v; CopiesTemplate (long v) : v (v) {} template <typename T> CopiesTemplate (T & o) : v (o.v + 1) {} CopiesTemplate (const CopiesTemplate &) = default; };
// A copy constructor that takes a non-const reference.
struct CopiesMutable { long v; CopiesMutable (long v) : v (v) {} CopiesMutable (CopiesMutable & o) : v (o.v) { asm volatile (""); } };
// A constructor with a default argument after the reference is a copy constructor, too.
struct CopiesMore { long v; CopiesMore (long v) : v (v) {} CopiesMore (const CopiesMore & o, int more = 0) : v (o.v + more) { asm volatile (""); } };
struct MovesOnly { long v; MovesOnly (long v) : v (v) {} MovesOnly (MovesOnly &&) = default; MovesOnly & operator= (const MovesOnly &) = delete; };
struct Outer { struct Inner { long v; Inner (long v) : v (v) {} Inner (const Inner & o) : v (o.v) { asm volatile (""); } }; Inner inner; };
using Alias = Outer::Inner;
struct Assigns { long v; Assigns & operator= (const Assigns &) { return *this; } };
struct Derived : Large { };
struct TwoEmptyBases : std::true_type, std::piecewise_construct_t { double d; TwoEmptyBases (double d) : std::piecewise_construct_t (std::piecewise_construct), d (d) {} };
union Either { long l; double d; };
struct HoldsEither { Either e; float f; };
struct Static { static Outer::Inner shared; long v; };
struct alignas (16) Aligned { long v; };

NOIPA long pass_large (Large v, int after) { return v.c + after; }
NOIPA double pass_large_floats (int before, LargeFloats v, double after) { return v.a[2] + after; }
NOIPA long pass_packed (Packed v, int after) { return v.l + after; }
NOIPA Mixed pass_mixed (Mixed v, int after) { v.i += after; return v; }
NOIPA long pass_bits (Bits v, int after) { return v.c + after; }
NOIPA long pass_copies_template (CopiesTemplate v, int after) { return v.v + after; }
NOIPA long pass_copies_mutable (CopiesMutable v, int after) { return v.v + after; }
NOIPA long pass_copies_more (CopiesMore v, int after) { return v.v + after; }
NOIPA long pass_moves_only (MovesOnly v, int after) { return v.v + after; }
NOIPA long pass_nested (Alias v, int after) { return v.v + after; }
NOIPA Assigns pass_assigns (Assigns v, int after) { v.v += after; return v; }
NOIPA long pass_derived (Derived v, int after) { return v.c + after; }
NOIPA double pass_bases (TwoEmptyBases v, int after) { return v.d + after; }
NOIPA long pass_either (HoldsEither v, int after) { return v.e.l + after; }
NOIPA long pass_static (Static v, int after) { return v.v + after; }
NOIPA long pass_aligned (int a, int b, int c, int d, int e, int f, long g, Aligned v, int after) { return v.v + after; }
NOIPA int pass_pair (std::pair<int, float> v, int after) { return v.first + after; }
NOIPA int pass_tuple (std::tuple<int, long> v, int after) { return std::get<0> (v) + after; }
NOIPA long pass_optional (std::optional<long> v, int after) { return *v + after; }
NOIPA std::array<int, 3> pass_array (std::array<int, 3> v, int after) { v[1] += after; return v; }
NOIPA std::string_view pass_view (std::string_view v, int after) { return v.substr (after); }
NOIPA int pass_shared (std::shared_ptr<int> v, int after) { return *v + after; }
NOIPA std::complex<float> pass_complex (std::complex<float> v, int after) { return v * (float) after; }
NOIPA std::chrono::nanoseconds pass_duration (std::chrono::nanoseconds v, int after) { return v * after; }
NOIPA int pass_function (std::function<int (int)> v, int after) { return v (after); }
NOIPA int pass_reference (std::reference_wrapper<int> v, int after) { return v + after; }

Outer::Inner Static::shared (1);

#define TELL(function) ARG (#function, after)
#define BOTH(function) ARG (#function, v); ARG (#function, after)

int
main (int argc, char **)
{
  int after = argc + 4;
  { Large v { 1, 2, 3 }; BOTH (pass_large); pass_large (v, after); }
  { LargeFloats v { { 1, 2, 3 } }; double after = 5; int before = 6; BOTH (pass_large_floats); ARG ("pass_large_floats", before); double r = pass_large_floats (before, v, after); RET ("pass_large_floats", r); }
  { Packed v { 1, 2 }; BOTH (pass_packed); pass_packed (v, after); }
  { Mixed v { 1, 2, 3 }; BOTH (pass_mixed); Mixed r = pass_mixed (v, after); RET ("pass_mixed", r); }
  { Bits v { 1, 2, 3 }; BOTH (pass_bits); pass_bits (v, after); }
  { CopiesTemplate v (4); BOTH (pass_copies_template); const CopiesTemplate & c = v; pass_copies_template (c, after); }
  { CopiesMutable v (5); BOTH (pass_copies_mutable); pass_copies_mutable (v, after); }
  { CopiesMore v (6); BOTH (pass_copies_more); pass_copies_more (v, after); }
  { MovesOnly v (7); BOTH (pass_moves_only); pass_moves_only (std::move (v), after); }
  { Alias v (8); BOTH (pass_nested); pass_nested (v, after); }
  { Assigns v { 9 }; BOTH (pass_assigns); Assigns r = pass_assigns (v, after); RET ("pass_assigns", r); }
  { Derived v { { 1, 2, 3 } }; BOTH (pass_derived); pass_derived (v, after); }
  { TwoEmptyBases v (10); BOTH (pass_bases); double r = pass_bases (v, after); RET ("pass_bases", r); }
  { HoldsEither v; v.e.l = 11; v.f = 2; ARG_BYTES ("pass_either", v, 12); TELL (pass_either); pass_either (v, after); }
  { Static v { 12 }; BOTH (pass_static); pass_static (v, after); }
  { Aligned v { 13 }; ARG_BYTES ("pass_aligned", v, 8); TELL (pass_aligned); pass_aligned (1, 2, 3, 4, 5, 6, 7, v, after); }
  { std::pair<int, float> v { 14, 2 }; BOTH (pass_pair); pass_pair (v, after); }
  { std::tuple<int, long> v { 15, 2 }; TELL (pass_tuple); pass_tuple (v, after); }
  { std::optional<long> v { 16 }; ARG_BYTES ("pass_optional", v, 9); TELL (pass_optional); pass_optional (v, after); }
  { std::array<int, 3> v { 17, 2, 3 }; BOTH (pass_array); auto r = pass_array (v, after); RET ("pass_array", r); }
  { std::string_view v = "a view of text"; BOTH (pass_view); auto r = pass_view (v, after); RET ("pass_view", r); }
  { auto v = std::make_shared<int> (18); BOTH (pass_shared); pass_shared (v, after); }
  { std::complex<float> v { 19, 2 }; BOTH (pass_complex); auto r = pass_complex (v, after); RET ("pass_complex", r); }
  { std::chrono::nanoseconds v { 20 }; BOTH (pass_duration); auto r = pass_duration (v, after); RET ("pass_duration", r); }
  { std::function<int (int)> v = [after] (int n) { return n + after; }; TELL (pass_function); pass_function (v, after); }
  { int held = 21; std::reference_wrapper<int> v (held); BOTH (pass_reference); pass_reference (v, after); }
  return 0;
}
