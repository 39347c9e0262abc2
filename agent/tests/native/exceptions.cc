/* C++ exceptions through traced frames that are neighbours of each other. */
#include "driver.h"

namespace
{

void * thrower_stub, * middle_stub, * catcher_stub;
uint64_t slots[3];
int destroyed;
bool rethrow;

struct Guard
{
  ~Guard () { destroyed++; }
};

NOINLINE uint64_t
thrower (uint64_t n)
{
  slots[2] = SLOT ();
  Guard guard;
  throw n;
}

NOINLINE uint64_t
middle (uint64_t n)
{
  slots[1] = SLOT ();
  Guard guard;
  try
  {
    return shim (n + 1, 0, 0, 0, 0, 0, thrower_stub) + destroyed;
  }
  catch (uint64_t)
  {
    if (rethrow)
      throw;
    throw n + 1;
  }
}

NOINLINE uint64_t
catcher (uint64_t n)
{
  slots[0] = SLOT ();
  Guard guard;
  try
  {
    return shim (n + 1, 0, 0, 0, 0, 0, middle_stub);
  }
  catch (uint64_t thrown)
  {
    return thrown * 2;
  }
}

void
expect_enters (struct tape * tape, uint32_t from, uint64_t n)
{
  for (uint32_t i = from; i < 3; i++)
  {
    struct call call = { i, slots[i], (uint64_t) shim_returns, { n + i - from, 0, 0, 0, 0, 0 } };
    expect_enter (tape, WIRE_KIND_ENTER, &call);
  }
}

void
make_stubs (bool with_vectors)
{
  thrower_stub = traced ((void *) thrower, 2, 0, with_vectors);
  middle_stub = traced ((void *) middle, 1, 0, 0);
  catcher_stub = traced ((void *) catcher, 0, 0, with_vectors);
}

} // namespace

extern "C" void
case_exceptions_pass_traced_frames (void)
{
  struct tape tape = {};
  for (uint64_t n = 0; n < 100; n++)
  {
    uint64_t caught = 0;
    make_stubs (n % 2 == 1);
    rethrow = n % 3 == 0;
    destroyed = 0;
    try
    {
      shim (n, 0, 0, 0, 0, 0, middle_stub);
    }
    catch (uint64_t thrown)
    {
      caught = thrown;
    }
    EQUAL (caught, n + 1);
    EQUAL (destroyed, 2);
    drain (&tape, my_ring ());
    if (n == 0)
      expect_thread (&tape);
    expect_enters (&tape, 1, n);
    CHECK (at_end (&tape));
  }
}

extern "C" void
case_exceptions_are_caught_between_traced_frames (void)
{
  struct tape tape = {};
  for (uint64_t n = 0; n < 100; n++)
  {
    make_stubs (false);
    rethrow = n % 3 == 0;
    destroyed = 0;
    EQUAL (shim (n, 0, 0, 0, 0, 0, catcher_stub), (n + 2) * 2);
    EQUAL (destroyed, 3);
    drain (&tape, my_ring ());
    if (n == 0)
      expect_thread (&tape);
    expect_enters (&tape, 0, n);
    expect_leave (&tape, slots[0], (n + 2) * 2);
    CHECK (at_end (&tape));
  }
}
