/* Every way in which C passes arguments and returns results on x86-64. */
#include "tell.h"

#include <complex.h>
#include <immintrin.h>
#include <stdarg.h>
#include <stdbool.h>

struct two_ints { int a, b; };
struct double_long { double d; long l; };
struct long_double_pair { long l; double d; };
struct floats { float x, y; };
struct float_int { float x; int i; };
struct three_floats { float x, y, z; };
struct four_floats { float x, y, z, w; };
struct bytes3 { char c[3]; };
struct bytes16 { char c[16]; };
struct longs { long a, b; };
struct big { long a, b, c; };
struct bits { unsigned a : 3, b : 29; unsigned long c : 40, d : 24; };
struct __attribute__ ((packed)) packed { char c; double d; };
struct __attribute__ ((packed)) packed_ok { int a; char b, c, d, e; };
struct nested { struct two_ints t; struct floats f; };
struct arrays { short s[2]; float f[1]; double d; };
struct empty { };
struct has_empty { struct empty e; double d; };
struct ld { long double v; };
struct __attribute__ ((aligned (32))) wide { long a[4]; };
struct with_int128 { __int128 v; };
struct quad { _Float128 v; };
struct flexible { long n; char rest[]; };
struct pointer_and_float { void * p; float f; };
union either { double d; long l; };
union float_or_double { double d; float f; };
enum color { RED, GREEN = 5, BLUE = -3 };
enum flag { OFF, ON };
typedef struct two_ints alias;
typedef int (* callback) (int);

NOIPA int ints (signed char a, unsigned short b, int c, unsigned long d, char e, bool f, long long g, short h) { return a + b + c + (int) d + e + f + (int) g + h; }
NOIPA double doubles (double a, float b, double c, float d, double e, double f, double g, double h, double i, float j) { return a + b + c + d + e + f + g + h + i + j; }
NOIPA float mixed (int a, float b, long c, double d, void * p, callback q) { return a + b + c + d + (p != 0) + (q != 0); }
NOIPA struct two_ints pass_two_ints (struct two_ints v, int after) { v.a += after; return v; }
NOIPA struct double_long pass_double_long (struct double_long v, int after) { v.l += after; return v; }
NOIPA struct long_double_pair pass_long_double (struct long_double_pair v, double after) { v.d += after; return v; }
NOIPA struct floats pass_floats (struct floats v, float after) { v.x += after; return v; }
NOIPA struct float_int pass_float_int (struct float_int v, float after) { v.x += after; return v; }
NOIPA struct three_floats pass_three_floats (struct three_floats v, float after) { v.x += after; return v; }
NOIPA struct four_floats pass_four_floats (struct four_floats v, float after) { v.x += after; return v; }
NOIPA struct bytes3 pass_bytes3 (struct bytes3 v, int after) { v.c[0] += after; return v; }
NOIPA struct bytes16 pass_bytes16 (struct bytes16 v, int after) { v.c[0] += after; return v; }
NOIPA struct big pass_big (int before, struct big v, int after) { v.a += before + after; return v; }
NOIPA struct bits pass_bits (struct bits v, int after) { v.a += after; return v; }
NOIPA struct packed pass_packed (struct packed v, int after) { v.c += after; return v; }
NOIPA struct packed_ok pass_packed_ok (struct packed_ok v, int after) { v.a += after; return v; }
NOIPA struct nested pass_nested (struct nested v, int after) { v.t.a += after; return v; }
NOIPA struct arrays pass_arrays (struct arrays v, int after) { v.s[0] += after; return v; }
NOIPA int pass_empty (struct empty v, int after) { (void) v; return after; }
NOIPA struct has_empty pass_has_empty (struct has_empty v, int after) { v.d += after; return v; }
NOIPA struct ld pass_ld (struct ld v, int after) { v.v += after; return v; }
NOIPA struct wide pass_wide (int a, int b, int c, int d, int e, int f, int g, struct wide v, int after) { v.a[0] += a + b + c + d + e + f + g + after; return v; }
NOIPA struct with_int128 pass_struct128 (struct with_int128 v, int after) { v.v += after; return v; }
NOIPA struct quad pass_quad_struct (struct quad v, float after) { v.v += after; return v; }
NOIPA struct pointer_and_float pass_pointer_and_float (struct pointer_and_float v, int after) { v.f += after; return v; }
NOIPA union either pass_either (union either v, int after) { v.l += after; return v; }
NOIPA union float_or_double pass_float_or_double (union float_or_double v, int after) { v.d += after; return v; }
NOIPA enum color pass_enum (enum color v, enum flag w) { return v + (w == ON); }
NOIPA alias pass_alias (const volatile alias v) { alias r = { v.a, v.b }; return r; }
NOIPA __int128 pass_int128 (int a, __int128 v, unsigned __int128 w, int b, __int128 x, int c) { return v + (__int128) w + x + a + b + c; }
NOIPA long double pass_long_double_value (int a, long double v, long double w, int b) { return a + v + w + b; }
NOIPA _Float128 pass_quad (_Float128 v, double w) { return v + w; }
NOIPA float complex pass_complex_float (float complex v, float w) { return v + w; }
NOIPA double complex pass_complex_double (double complex v, double w) { return v + w; }
NOIPA long double complex pass_complex_long_double (int a, long double complex v, int b) { return a + v + b; }
NOIPA _Complex int pass_complex_int (_Complex int v, int b) { return v + b; }
NOIPA _Complex long pass_complex_long (_Complex long v, int b) { return v + b; }
NOIPA __m128 pass_m128 (__m128 v, int after, float more) { v[0] += after + more; return v; }
NOIPA __m64 pass_m64 (__m64 v, double after) { (void) after; return v; }
NOIPA _Decimal64 pass_decimal (_Decimal64 v, double after) { (void) after; return v; }
NOIPA _Float16 pass_half (_Float16 v, float after) { (void) after; return v; }
NOIPA struct longs one_register_left (int a, int b, int c, int d, int e, struct longs v, int after) { v.a += a + b + c + d + e + after; return v; }
NOIPA struct double_long no_vector_left (double a, double b, double c, double d, double e, double f, double g, double h, struct double_long v, long after) { v.l += after + (long) (a + b + c + d + e + f + g + h); return v; }
NOIPA int many (struct big a, char b, struct bytes16 c, short d, float e, long double f, char g, int h, int i, int j, char k) { return (int) a.a + b + c.c[0] + d + (int) e + (int) f + g + h + i + j + k; }
NOIPA int variadic (const char * format, int count, double first, ...) { va_list l; int r; va_start (l, first); r = va_arg (l, int) + count + (format != 0) + (int) first; va_end (l); return r; }
NOIPA void nothing (void) { __asm__ volatile (""); }
NOIPA int old_style (a, b, c) int a; double b; char * c; { return a + (int) b + (c != 0); }
NOIPA int unprototyped () { return 7; }

/* Functions that optimisers change: a constant argument, an unused argument, a pointer that is only read through. */
static int __attribute__ ((noinline)) changed (int same, int unused, struct longs * through, int kept, double real) { return same * kept + (int) through->a + (int) real; }
static long __attribute__ ((noinline)) pure_unused (long first, long second, long third) { return first ^ third; }
static void __attribute__ ((noinline)) ignored_result_helper (int * p) { *p += 1; }
static int __attribute__ ((noinline)) ignored_result (int * into, int amount, int unused) { *into += amount; ignored_result_helper (into); return *into * 3; }

#define CHECK(result_type, function, call) do { result_type r = call; RET (function, r); } while (0)

static void
scalars (int n)
{
  { signed char a = -5; unsigned short b = 65000; int c = -70000 + n; unsigned long d = 0x123456789abcdef0; char e = 'x'; bool f = true; long long g = -9; short h = -300;
    ARG ("ints", a); ARG ("ints", b); ARG ("ints", c); ARG ("ints", d); ARG ("ints", e); ARG ("ints", f); ARG ("ints", g); ARG ("ints", h);
    CHECK (int, "ints", ints (a, b, c, d, e, f, g, h)); }
  { double a = 1.5, c = 2.5, e = 3.5, f = 4.5, g = 5.5, h = 6.5, i = 7.5 + n; float b = 8.5, d = 9.5, j = 10.5;
    ARG ("doubles", a); ARG ("doubles", b); ARG ("doubles", c); ARG ("doubles", d); ARG ("doubles", e); ARG ("doubles", f); ARG ("doubles", g); ARG ("doubles", h); ARG ("doubles", i); ARG ("doubles", j);
    CHECK (double, "doubles", doubles (a, b, c, d, e, f, g, h, i, j)); }
  { int a = 1 + n; float b = 2; long c = 3; double d = 4; void * p = &a; callback q = 0;
    ARG ("mixed", a); ARG ("mixed", b); ARG ("mixed", c); ARG ("mixed", d); ARG ("mixed", p); ARG ("mixed", q);
    CHECK (float, "mixed", mixed (a, b, c, d, p, q)); }
  { enum color v = BLUE; enum flag w = ON; ARG ("pass_enum", v); ARG ("pass_enum", w); CHECK (enum color, "pass_enum", pass_enum (v, w)); }
  { int a = 1, b = 2, c = 3 + n; __int128 v = (__int128) 0x1111222233334444 << 64 | 5, x = -7; unsigned __int128 w = 6;
    ARG ("pass_int128", a); ARG ("pass_int128", v); ARG ("pass_int128", w); ARG ("pass_int128", b); ARG ("pass_int128", x); ARG ("pass_int128", c);
    CHECK (__int128, "pass_int128", pass_int128 (a, v, w, b, x, c)); }
  { int a = 1, b = 2; long double v = 3.25 + n, w = 4.125, r; ARG ("pass_long_double_value", a); ARG_BYTES ("pass_long_double_value", v, 10); ARG_BYTES ("pass_long_double_value", w, 10); ARG ("pass_long_double_value", b);
    r = pass_long_double_value (a, v, w, b); RET_BYTES ("pass_long_double_value", r, 10); }
  { _Float128 v = 3 + n; double w = 4; ARG ("pass_quad", v); ARG ("pass_quad", w); CHECK (_Float128, "pass_quad", pass_quad (v, w)); }
  { float complex v = 1 + 2 * I; float w = 3 + n; ARG ("pass_complex_float", v); ARG ("pass_complex_float", w); CHECK (float complex, "pass_complex_float", pass_complex_float (v, w)); }
  { double complex v = 1 + 2 * I; double w = 3 + n; ARG ("pass_complex_double", v); ARG ("pass_complex_double", w); CHECK (double complex, "pass_complex_double", pass_complex_double (v, w)); }
  { int a = 1 + n, b = 2; long double complex v = 1 + 2 * I; ARG ("pass_complex_long_double", a); ARG_BYTES ("pass_complex_long_double", v, 10); ARG ("pass_complex_long_double", b); pass_complex_long_double (a, v, b); }
  { _Complex int v = 5 + 6i; int b = 3 + n; ARG ("pass_complex_int", v); ARG ("pass_complex_int", b); CHECK (_Complex int, "pass_complex_int", pass_complex_int (v, b)); }
  { _Complex long v = 5 + 6i; int b = 3 + n; ARG ("pass_complex_long", v); ARG ("pass_complex_long", b); CHECK (_Complex long, "pass_complex_long", pass_complex_long (v, b)); }
  { __m128 v = { 1, 2, 3, 4 }; int after = 5 + n; float more = 2; ARG ("pass_m128", v); ARG ("pass_m128", after); ARG ("pass_m128", more); CHECK (__m128, "pass_m128", pass_m128 (v, after, more)); }
  { __m64 v = (__m64) 0x1234567812345678LL; double after = 5 + n; ARG ("pass_m64", v); ARG ("pass_m64", after); CHECK (__m64, "pass_m64", pass_m64 (v, after)); }
  { _Decimal64 v = 5; double after = 5 + n; ARG ("pass_decimal", v); ARG ("pass_decimal", after); CHECK (_Decimal64, "pass_decimal", pass_decimal (v, after)); }
  { _Float16 v = 5; float after = 5 + n; ARG ("pass_half", v); ARG ("pass_half", after); CHECK (_Float16, "pass_half", pass_half (v, after)); }
  { const char * format = "f"; int count = 4 + n; double first = 8; ARG ("variadic", format); ARG ("variadic", count); ARG ("variadic", first); CHECK (int, "variadic", variadic (format, count, first, 3)); }
  { int a = 3; double b = 4 + n; char * c = "x"; ARG ("old_style", a); ARG ("old_style", b); ARG ("old_style", c); CHECK (int, "old_style", old_style (a, b, c)); }
  nothing ();
  CHECK (int, "unprototyped", unprototyped ());
}

#define STRUCT(type, function, after_type, ...) \
  do { type v = __VA_ARGS__; after_type after = 3 + n; ARG (function, v); ARG (function, after); } while (0)
#define ONE(type, function, after_type, ...) \
  do { type v = __VA_ARGS__; after_type after = (after_type) (3 + n); type r; ARG (#function, v); ARG (#function, after); r = function (v, after); RET (#function, r); } while (0)

static void
records (int n)
{
  ONE (struct two_ints, pass_two_ints, int, { 1, 2 });
  ONE (struct double_long, pass_double_long, int, { 1, 2 });
  ONE (struct long_double_pair, pass_long_double, double, { 1, 2 });
  ONE (struct floats, pass_floats, float, { 1, 2 });
  ONE (struct float_int, pass_float_int, float, { 1, 2 });
  ONE (struct three_floats, pass_three_floats, float, { 1, 2, 3 });
  ONE (struct four_floats, pass_four_floats, float, { 1, 2, 3, 4 });
  ONE (struct bytes3, pass_bytes3, int, { "ab" });
  ONE (struct bytes16, pass_bytes16, int, { "abcdefghijklmno" });
  ONE (struct bits, pass_bits, int, { 1, 2, 3, 4 });
  ONE (struct packed, pass_packed, int, { 1, 2 });
  ONE (struct packed_ok, pass_packed_ok, int, { 1, 2, 3, 4, 5 });
  ONE (struct nested, pass_nested, int, { { 1, 2 }, { 3, 4 } });
  ONE (struct arrays, pass_arrays, int, { { 1, 2 }, { 3 }, 4 });
  ONE (struct has_empty, pass_has_empty, int, { {}, 3 });
  ONE (struct with_int128, pass_struct128, int, { 77 });
  ONE (struct quad, pass_quad_struct, float, { 77 });
  ONE (union either, pass_either, int, { .l = 12345 });
  ONE (union float_or_double, pass_float_or_double, int, { .d = 2 });
  { struct empty v; int after = 3 + n; ARG ("pass_empty", v); ARG ("pass_empty", after); CHECK (int, "pass_empty", pass_empty (v, after)); }
  { struct ld v = { 7 }, r; int after = 3 + n; ARG_BYTES ("pass_ld", v, 10); ARG ("pass_ld", after); r = pass_ld (v, after); RET_BYTES ("pass_ld", r, 10); }
  { int before = 1 + n, after = 2; struct big v = { 3, 4, 5 }; ARG ("pass_big", before); ARG ("pass_big", v); ARG ("pass_big", after); CHECK (struct big, "pass_big", pass_big (before, v, after)); }
  { int a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7 + n, after = 8; struct wide v = { { 9, 10, 11, 12 } };
    ARG ("pass_wide", a); ARG ("pass_wide", g); ARG ("pass_wide", v); ARG ("pass_wide", after); CHECK (struct wide, "pass_wide", pass_wide (a, b, c, d, e, f, g, v, after)); }
  { struct pointer_and_float v = { &v, 3 }; int after = 4 + n; ARG_BYTES ("pass_pointer_and_float", v, 12); ARG ("pass_pointer_and_float", after); pass_pointer_and_float (v, after); }
  { alias v = { 1, 2 + n }; ARG ("pass_alias", v); CHECK (alias, "pass_alias", pass_alias (v)); }
  { int a = 1, b = 2, c = 3, d = 4, e = 5 + n, after = 6; struct longs v = { 7, 8 }; ARG ("one_register_left", e); ARG ("one_register_left", v); ARG ("one_register_left", after);
    CHECK (struct longs, "one_register_left", one_register_left (a, b, c, d, e, v, after)); }
  { double h = 1 + n; struct double_long v = { 2, 3 }; long after = 4; ARG ("no_vector_left", h); ARG ("no_vector_left", v); ARG ("no_vector_left", after);
    CHECK (struct double_long, "no_vector_left", no_vector_left (1, 2, 3, 4, 5, 6, 7, h, v, after)); }
  { struct big a = { 1, 2, 3 }; char b = 4; struct bytes16 c = { "abc" }; short d = 5; float e = 6; long double f = 7; char g = 8; int h = 9, i = 10, j = 11 + n; char k = 12;
    ARG ("many", a); ARG ("many", b); ARG ("many", c); ARG ("many", d); ARG ("many", e); ARG_BYTES ("many", f, 10); ARG ("many", g); ARG ("many", h); ARG ("many", i); ARG ("many", j); ARG ("many", k);
    CHECK (int, "many", many (a, b, c, d, e, f, g, h, i, j, k)); }
}

static void
optimised (int n)
{
  { struct longs through = { 3 + n, 4 }; int same = 5, unused = 6, kept = 7 + n; double real = 8 + n;
    ARG ("changed", same); ARG ("changed", unused); ARG ("changed", kept); ARG ("changed", real);
    CHECK (int, "changed", changed (same, unused, &through, kept, real)); }
  { long first = 1 + n, second = 2 + n, third = 3 + n; ARG ("pure_unused", first); ARG ("pure_unused", second); ARG ("pure_unused", third);
    CHECK (long, "pure_unused", pure_unused (first, second, third)); }
  { static int counter; int amount = 5 + n, unused = 9; int * into = &counter; ARG ("ignored_result", into); ARG ("ignored_result", amount); ARG ("ignored_result", unused);
    ignored_result (into, amount, unused); }
}

int
main (int argc, char ** argv)
{
  (void) argv;
  scalars (argc);
  records (argc);
  optimised (argc);
  return 0;
}
