// Every way in which C++ passes arguments and returns results on x86-64, beyond C's.
#include "tell.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

enum class Level : std::uint8_t { Low, High = 200 };

namespace shapes {
struct Point { int x, y; };
struct Base { double b; };
struct Derived : Base { float f; int i; };
struct Empty {};
struct DerivedFromEmpty : Empty { float f; };
struct WithDestructor { long v; ~WithDestructor () { asm volatile (""); } };
struct WithCopy { long v; WithCopy (long v) : v (v) {} WithCopy (const WithCopy & o) : v (o.v) { asm volatile (""); } };
struct WithMove { long v; WithMove (long v) : v (v) {} WithMove (WithMove && o) : v (o.v) { o.v = 0; } };
struct Defaulted { long v; Defaulted () = default; Defaulted (const Defaulted &) = default; ~Defaulted () = default; };
struct DefaultedOutside { long v; DefaultedOutside () : v (9) {} ~DefaultedOutside (); };
DefaultedOutside::~DefaultedOutside () = default;
struct OnlyAssigns { long v; OnlyAssigns & operator= (const OnlyAssigns & o) { v = o.v; return *this; } };
struct HasMember { WithDestructor m; };
struct HasBase : WithCopy { HasBase () : WithCopy (4) {} };
struct HasArray { WithDestructor m[1]; };
struct Virtual { long v = 3; virtual int f (int a) { return a + (int) v; } virtual ~Virtual () {} };
struct NoCopy { long v; NoCopy (long v) : v (v) {} NoCopy (const NoCopy &) = delete; NoCopy (NoCopy &&) = default; };
template <typename T> struct Box { T value; Box (T v) : value (v) {} Box (const Box & o) : value (o.value) { asm volatile (""); } };
template <typename T> struct Plain { T value; int n; };

struct Counter {
  int total = 0;
  NOIPA int add (int amount, double factor) { total += amount * (int) factor; return total; }
  NOIPA int get (int extra) const { return total + extra; }
  static NOIPA int make (int from, float scale) { return from * (int) scale; }
  NOIPA Counter & operator+= (const Point & p) { total += p.x; return *this; }
};

struct VirtualBase { int vb = 1; };
struct Left : virtual VirtualBase { int left; __attribute__ ((noinline)) Left (int left_value, double d) : left (left_value + (int) d) {} };
struct Bottom : Left { int bottom; __attribute__ ((noinline)) Bottom (int bottom_value) : Left (bottom_value, 2.0), bottom (bottom_value) {} };

NOIPA Point pass_point (Point v, int after) { v.x += after; return v; }
NOIPA Derived pass_derived (Derived v, int after) { v.i += after; return v; }
NOIPA int pass_empty (Empty v, int after) { (void) v; return after; }
NOIPA DerivedFromEmpty pass_derived_from_empty (DerivedFromEmpty v, int after) { v.f += after; return v; }
NOIPA WithDestructor pass_destructor (WithDestructor v, int after) { v.v += after; return v; }
NOIPA WithCopy pass_copy (WithCopy v, int after) { v.v += after; return v; }
NOIPA long pass_move (WithMove v, int after) { return v.v + after; }
NOIPA Defaulted pass_defaulted (Defaulted v, int after) { v.v += after; return v; }
NOIPA long pass_defaulted_outside (DefaultedOutside v, int after) { return v.v + after; }
NOIPA OnlyAssigns pass_only_assigns (OnlyAssigns v, int after) { v.v += after; return v; }
NOIPA long pass_has_member (HasMember v, int after) { return v.m.v + after; }
NOIPA long pass_has_base (HasBase v, int after) { return v.v + after; }
NOIPA long pass_has_array (HasArray v, int after) { return v.m[0].v + after; }
NOIPA long pass_virtual (Virtual v, int after) { return v.v + after; }
NOIPA long pass_no_copy (NoCopy v, int after) { return v.v + after; }
NOIPA int pass_box (Box<int> v, int after) { return v.value + after; }
NOIPA double pass_plain (Plain<double> v, int after) { return v.value + after; }
}

namespace {
NOIPA int hidden (int value, shapes::Point & by_reference, const double && moved) { return value + by_reference.x + (int) moved; }
}

NOIPA Level pass_level (Level v, std::nullptr_t nothing, int after) { return nothing == nullptr && after ? v : Level::Low; }
NOIPA std::size_t pass_string (std::string v, const std::string & w, int after) { return v.size () + w.size () + after; }
NOIPA int pass_unique (std::unique_ptr<int> v, int after) { return *v + after; }
NOIPA std::vector<int> pass_vector (std::vector<int> v, int after) { v.push_back (after); return v; }
NOIPA int pass_member_pointer (int shapes::Point::* v, int (shapes::Counter::* w) (int, double), int after) { return v != nullptr && w != nullptr ? after : 0; }
template <typename T, int N> NOIPA T scaled (T value, char after) { return value * N + after; }
NOIPA int overloaded (int a) { return a; }
NOIPA double overloaded (double a) { return a; }
extern "C" NOIPA int c_name (int a, float b) { return a + (int) b; }
NOIPA char32_t characters (char a, char16_t b, char32_t c, wchar_t d, unsigned char e) { return a + b + c + d + e; }

#define CHECK(result_type, function, call) do { result_type r = call; RET (function, r); } while (0)
#define ONE(function, value_type, ...) \
  do { value_type v __VA_ARGS__; int after = 5 + n; ARG ("shapes::" #function, v); ARG ("shapes::" #function, after); auto r = shapes::function (v, after); RET ("shapes::" #function, r); } while (0)
#define MOVED(function, value_type, ...) \
  do { value_type v __VA_ARGS__; int after = 5 + n; ARG ("shapes::" #function, v); ARG ("shapes::" #function, after); auto r = shapes::function (std::move (v), after); RET ("shapes::" #function, r); } while (0)

static void
classes (int n)
{
  ONE (pass_point, shapes::Point, { 1, 2 });
  ONE (pass_derived_from_empty, shapes::DerivedFromEmpty, { {}, 2 });
  ONE (pass_empty, shapes::Empty, {});
  ONE (pass_destructor, shapes::WithDestructor, { 3 });
  ONE (pass_copy, shapes::WithCopy, { 4 });
  MOVED (pass_move, shapes::WithMove, { 5 });
  { shapes::Defaulted v; v.v = 6; int after = 5 + n; ARG ("shapes::pass_defaulted", v); ARG ("shapes::pass_defaulted", after); CHECK (shapes::Defaulted, "shapes::pass_defaulted", shapes::pass_defaulted (v, after)); }
  ONE (pass_defaulted_outside, shapes::DefaultedOutside, {});
  ONE (pass_only_assigns, shapes::OnlyAssigns, { 7 });
  ONE (pass_has_member, shapes::HasMember, { { 8 } });
  ONE (pass_has_base, shapes::HasBase, {});
  ONE (pass_has_array, shapes::HasArray, { { { 9 } } });
  ONE (pass_virtual, shapes::Virtual, {});
  MOVED (pass_no_copy, shapes::NoCopy, { 10 });
  ONE (pass_box, shapes::Box<int>, { 11 });
  { shapes::Plain<double> v { 2, 3 }; int after = n; ARG_BYTES ("shapes::pass_plain", v, 12); ARG ("shapes::pass_plain", after); CHECK (double, "shapes::pass_plain", shapes::pass_plain (v, after)); }
  { shapes::Derived v; v.b = 1; v.f = 2; v.i = 3; int after = n; ARG ("shapes::pass_derived", v); ARG ("shapes::pass_derived", after); CHECK (shapes::Derived, "shapes::pass_derived", shapes::pass_derived (v, after)); }
}

static void
methods (int n)
{
  shapes::Counter counter;
  shapes::Counter * self = &counter;
  { int amount = 3 + n; double factor = 2; tell ("ARG", "shapes::Counter::add", "this", &self, 8); ARG ("shapes::Counter::add", amount); ARG ("shapes::Counter::add", factor); CHECK (int, "shapes::Counter::add", counter.add (amount, factor)); }
  { int extra = 4 + n; tell ("ARG", "shapes::Counter::get", "this", &self, 8); ARG ("shapes::Counter::get", extra); CHECK (int, "shapes::Counter::get", counter.get (extra)); }
  { int from = 4 + n; float scale = 3; ARG ("shapes::Counter::make", from); ARG ("shapes::Counter::make", scale); CHECK (int, "shapes::Counter::make", shapes::Counter::make (from, scale)); }
  { shapes::Point point { 1, n }; shapes::Point * p = &point; tell ("ARG", "shapes::Counter::operator+=", "this", &self, 8); ARG ("shapes::Counter::operator+=", p); shapes::Counter * r = &(counter += point); RET ("shapes::Counter::operator+=", r); }
  { int captured = 6 + n; int given = 7; auto lambda = [&captured, n] (int given, double more) __attribute__ ((noipa)) { return captured + given + (int) more + n; }; double more = 2; auto * self = &lambda;
    tell ("ARG", "_ZZL7methodsiENKUlidE_clEid", "__closure", &self, 8); ARG ("_ZZL7methodsiENKUlidE_clEid", given); ARG ("_ZZL7methodsiENKUlidE_clEid", more); CHECK (int, "_ZZL7methodsiENKUlidE_clEid", lambda (given, more)); }
  { int bottom_value = 5 + n; ARG ("_ZN6shapes6BottomC1Ei", bottom_value); shapes::Bottom bottom (bottom_value); int left_value = bottom_value; double d = 2; ARG ("_ZN6shapes4LeftC2Eid", left_value); ARG ("_ZN6shapes4LeftC2Eid", d); asm volatile ("" :: "r" (&bottom) : "memory"); }
}

static void
others (int n)
{
  { int value = 1 + n; shapes::Point point { 2, 3 }; shapes::Point * by_reference = &point; double number = 4; double * moved = &number;
    ARG ("(anonymous namespace)::hidden", value); ARG ("(anonymous namespace)::hidden", by_reference); ARG ("(anonymous namespace)::hidden", moved);
    CHECK (int, "(anonymous namespace)::hidden", hidden (value, point, std::move (number))); }
  { Level v = Level::High; int after = 1 + n; ARG ("pass_level", v); ARG ("pass_level", after); CHECK (Level, "pass_level", pass_level (v, nullptr, after)); }
  { std::string w = "a longer string than fits into the object itself"; std::string * pw = &w; int after = n; tell ("ARG", "pass_string", "w", &pw, 8); ARG ("pass_string", after);
    CHECK (std::size_t, "pass_string", pass_string (w, w, after)); }
  { auto v = std::make_unique<int> (5 + n); int after = 3; ARG ("pass_unique", v); ARG ("pass_unique", after); CHECK (int, "pass_unique", pass_unique (std::move (v), after)); }
  { std::vector<int> v { 1, 2, n }; int after = 3; ARG ("pass_vector", v); ARG ("pass_vector", after); auto r = pass_vector (std::move (v), after); RET ("pass_vector", r); }
  { int shapes::Point::* v = &shapes::Point::y; int (shapes::Counter::* w) (int, double) = &shapes::Counter::add; int after = 2 + n; ARG ("pass_member_pointer", v); ARG ("pass_member_pointer", w); ARG ("pass_member_pointer", after);
    CHECK (int, "pass_member_pointer", pass_member_pointer (v, w, after)); }
  { long value = 5 + n; char after = 'a'; ARG ("scaled<long, 3>", value); ARG ("scaled<long, 3>", after); CHECK (long, "scaled<long, 3>", (scaled<long, 3> (value, after))); }
  { double value = 5 + n; char after = 'b'; ARG ("scaled<double, 2>", value); ARG ("scaled<double, 2>", after); CHECK (double, "scaled<double, 2>", (scaled<double, 2> (value, after))); }
  { int a = 5 + n; float b = 6; ARG ("c_name", a); ARG ("c_name", b); CHECK (int, "c_name", c_name (a, b)); }
  { char a = 'a'; char16_t b = u'b'; char32_t c = U'c' + n; wchar_t d = L'd'; unsigned char e = 5; ARG ("characters", a); ARG ("characters", b); ARG ("characters", c); ARG ("characters", d); ARG ("characters", e);
    CHECK (char32_t, "characters", characters (a, b, c, d, e)); }
  overloaded (n);
  overloaded (2.0 * n);
}

int
main (int argc, char **)
{
  classes (argc);
  methods (argc);
  others (argc);
  return 0;
}
