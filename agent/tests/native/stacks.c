/* Stacks in all places: the runtime hooks returns exactly where shared.rs has
 * shadows reserved. */
#define _GNU_SOURCE
#include "driver.h"

#include <sys/mman.h>

#define SOME (64UL << 10)

extern void * jump_target;
void jump_on (void);

static void * stub, * vector_stub, * tail_stub;
static struct tape tape;

static void
call_on_stack_at (uint64_t at, unsigned kind)
{
  void * memory = mmap ((void *) at, SOME, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  CHECK (memory == (void *) at, "%#lx: %m", at);
  void * top = (void *) (at + SOME);
  struct call call = { 1, at + SOME - 8, (uint64_t) other_returns, { 1, 2, 3, 4, 5, 6 } };
  EQUAL (other_stack_shim (1, 2, 3, 4, 5, 6, stub, top), 5);
  EQUAL (other_stack_shim (1, 2, 3, 4, 5, 6, vector_stub, top), 5);
  EQUAL (other_stack_shim (1, 2, 3, 4, 5, 6, tail_stub, top), 5);
  drain (&tape, my_ring ());
  for (uint32_t id = 1; id <= 3; id++)
  {
    call.id = id;
    uint64_t * record = take (&tape);
    CHECK (kind_of (record) == kind, "%u at %#lx", kind_of (record), at);
    check_enter (record, kind, &call, 0, NULL);
    if (id == 3)
    {
      record = take (&tape);
      EQUAL (kind_of (record), kind == WIRE_KIND_ENTER ? WIRE_KIND_ENTER_TAIL : kind);
    }
    if (kind == WIRE_KIND_ENTER)
      EQUAL (take (&tape)[2], 5);
  }
  CHECK (at_end (&tape));
  CHECK (munmap (memory, SOME) == 0);
}

static void
check_range (uint64_t shadow, uint64_t bytes)
{
  uint64_t low = shadow ^ 1UL << HS_SHADOW_BIT, high = low + bytes;
  call_on_stack_at (low + SOME, WIRE_KIND_ENTER);
  if (low != 0)
    call_on_stack_at (low - SOME, WIRE_KIND_ENTER_NOLEAVE);
  if (high == 1UL << 47)
    return; /* no addresses behind it; the kernel's stack may be anywhere before */
  call_on_stack_at (high - SOME, WIRE_KIND_ENTER);
  call_on_stack_at (high, WIRE_KIND_ENTER_NOLEAVE);
}

void
case_returns_are_hooked_where_there_is_a_shadow (void)
{
  stub = traced ((void *) work, 1, 0, 0);
  vector_stub = traced ((void *) work, 2, 0, 1);
  jump_target = traced ((void *) work, 4, 0, 0);
  tail_stub = traced ((void *) jump_on, 3, 0, 0);
  shim (0, 0, 0, 0, 0, 0, stub);
  drain (&tape, my_ring ());
  tape.next = tape.count;
#define CHECK_RANGE(base, bytes) check_range (base, bytes);
  EXPECTED_SHADOWS (CHECK_RANGE)
}

static uint64_t (* return_address_at) (uint64_t);

/* Returns 1 if the return address is found. */
static NOINLINE uint64_t
look_at_return_address (uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
  (void) a, (void) b, (void) c, (void) d, (void) e, (void) f;
  return *(const uint64_t *) return_address_at (SLOT ()) == (uint64_t) shim_returns;
}

/* The call is not hooked; it is; it is with vectors. */
void
case_return_addresses_are_found (void)
{
  void * looks = (void *) look_at_return_address;
  void * targets[] = { looks, traced (looks, 1, 0, 0), traced (looks, 2, 0, 1) };
  return_address_at = replacement ("hs_return_address_at", NULL);
  for (int i = 0; i < 3; i++)
    EQUAL (shim (0, 0, 0, 0, 0, 0, targets[i]), 1);
}
