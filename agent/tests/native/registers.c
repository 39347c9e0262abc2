/* What a call keeps, and what its records hold. */
#include "driver.h"

#include <string.h>

struct state
{
  uint64_t gpr[16], stack[16], mask[8];
  uint8_t vector[32][64];
  uint64_t flags;
} __attribute__ ((aligned (64)));

struct state put, seen, give, got;
int vector_width;
void * invoke_target, * jump_target, * second_jump_target;

extern char invoke_returns[];
void invoke (void);
void capture (void);
void jump_on (void);
void jump_on_twice (void);

/* The flags that instructions which compute set: CF, PF, AF, ZF, SF and OF. */
#define COMPUTED 0x8d5
#define ALWAYS_SET 0x202 /* the reserved bit and IF */

enum { RAX = 0, RCX = 1, RDX = 2, RSP = 4, RSI = 6, RDI = 7, R8 = 8, R9 = 9 };

static void
choose_values (struct state * state, uint64_t seed)
{
  uint64_t * words = (uint64_t *) state;
  for (size_t i = 0; i < sizeof (*state) / 8; i++)
    words[i] = seed + i * 0x9e3779b97f4a7c15;
  state->flags = (state->flags & COMPUTED) | ALWAYS_SET;
}

/* Compares what such a processor has of the two. */
static void
check_same (const struct state * a, const struct state * b)
{
  for (int i = 0; i < 16; i++)
    CHECK (i == RSP || a->gpr[i] == b->gpr[i], "register %d", i);
  CHECK (a->flags == b->flags, "flags %#lx, not %#lx", b->flags, a->flags);
  for (int i = 0; i < 8 && vector_width == 2; i++)
    CHECK (a->mask[i] == b->mask[i], "k%d", i);
  for (int i = 0; i < (vector_width == 2 ? 32 : 16); i++)
    CHECK (memcmp (a->vector[i], b->vector[i], (size_t) 16 << vector_width) == 0, "vector %d", i);
}

/* One call with everything compared. Returns its slot. */
static uint64_t
invoke_and_compare (void * target, uint64_t seed)
{
  choose_values (&put, seed);
  choose_values (&give, ~seed);
  invoke_target = target;
  invoke ();
  check_same (&put, &seen);
  check_same (&give, &got);
  EQUAL (seen.gpr[RSP], put.gpr[RSP] - 8);
  EQUAL (got.gpr[RSP], put.gpr[RSP]);
  CHECK (memcmp (put.stack, seen.stack, sizeof (put.stack)) == 0);
  CHECK (memcmp (put.stack, got.stack, sizeof (put.stack)) == 0);
  return seen.gpr[RSP];
}

static struct call
invoked (uint32_t id, uint64_t slot)
{
  const uint64_t * r = put.gpr;
  return (struct call) { id, slot, (uint64_t) invoke_returns,
                         { r[RDI], r[RSI], r[RDX], r[RCX], r[R8], r[R9] } };
}

static void
look_at_the_processor (void)
{
  vector_width = __builtin_cpu_supports ("avx512bw") ? 2 : __builtin_cpu_supports ("avx") ? 1 : 0;
  CHECK (vector_width > 0, "a processor with AVX is needed");
  if (vector_width < 2)
    fprintf (stderr, "this processor has no AVX-512: registers zmm and k were not tried\n");
}

/* A whole lap, so that every way through the code is taken: the first call,
 * the fast way, the end of the room at an enter and at a leave. Once for each
 * length of vectors that there is. */
void
case_registers_are_kept (void)
{
  struct tape tape = { 0 };
  void * stubs[] = { traced ((void *) capture, 1, 0, 0), traced ((void *) capture, 2, 8, 1) };
  _Static_assert (offsetof (struct state, flags) == 2368, "FLAGS in asm.S");
  look_at_the_processor ();
  for (; vector_width >= 0; vector_width--)
  {
    uint64_t laps = 0, before = 0;
    for (uint64_t i = 0; laps < 2; i++)
    {
      invoke_and_compare (stubs[i % 7 == 0], i);
      laps += ring_head (my_ring ()) < before;
      before = ring_head (my_ring ());
      if (i % 1000 == 0)
      {
        drain (&tape, my_ring ());
        tape.count = 0;
      }
    }
  }
}

static void
check_call (struct tape * tape, uint32_t id, unsigned xmm_args, int ret_xmm, uint64_t seed)
{
  uint64_t in[8], out[2];
  uint64_t slot = invoke_and_compare (traced ((void *) capture, id, xmm_args, ret_xmm), seed);
  struct call call = invoked (id, slot);
  for (int i = 0; i < 8; i++)
    memcpy (&in[i], put.vector[i], 8);
  for (int i = 0; i < 2; i++)
    memcpy (&out[i], give.vector[i], 8);
  drain (tape, my_ring ());
  if (seed == 0)
    check_thread (take (tape), main_stack_high - STACK_BYTES, main_stack_high, "driver");
  check_enter (take (tape), WIRE_KIND_ENTER, &call, xmm_args, in);
  int with_xmm = xmm_args != 0 || ret_xmm;
  check_leave (take (tape), slot, give.gpr[RAX], give.gpr[RDX], with_xmm ? out : NULL);
  CHECK (at_end (tape));
}

void
case_records_hold_arguments_and_results (void)
{
  static const uint32_t ids[] = { 0, 1, 0xfff, 0x1000, 0xabcdef1, (1U << WIRE_FUNCTION_BITS) - 1 };
  static const unsigned xmm_args[] = { 0, 2, 4, WIRE_ENTER_MAX_XMM };
  struct tape tape = { 0 };
  uint64_t seed = 0;
  look_at_the_processor ();
  for (size_t i = 0; i < sizeof (ids) / sizeof (ids[0]); i++)
    for (int j = 0; j < 4; j++)
      for (int ret_xmm = 0; ret_xmm < 2; ret_xmm++)
        check_call (&tape, ids[i], xmm_args[j], ret_xmm, seed++);
  /* The same where the thunks ask the slow side, for the enter or for the leave. */
  for (uint64_t left = 0; left < 300; left += 24)
    for (int j = 0; j < 4; j++)
    {
      fill (left);
      check_call (&tape, 77, xmm_args[j], j % 2, seed++);
    }
}

/* first -> second -> capture, by jumps: one slot, one leave. */
static void
check_tail_calls (struct tape * tape, int first_xmm, int others_xmm)
{
  void * first = traced ((void *) jump_on, 1, first_xmm ? 2 : 0, 0);
  jump_target = traced ((void *) jump_on_twice, 2, others_xmm ? 4 : 0, 0);
  second_jump_target = traced ((void *) capture, 3, 0, others_xmm);
  uint64_t slot = invoke_and_compare (first, 5);
  drain (tape, my_ring ());
  if (tape->next == 0)
    expect_thread (tape);
  uint64_t in[8], out[2];
  for (int i = 0; i < 8; i++)
    memcpy (&in[i], put.vector[i], 8);
  for (int i = 0; i < 2; i++)
    memcpy (&out[i], give.vector[i], 8);
  struct call call = invoked (1, slot);
  check_enter (take (tape), WIRE_KIND_ENTER, &call, first_xmm ? 2 : 0, in);
  for (uint32_t id = 2; id <= 3; id++)
  {
    uint64_t * record = take (tape);
    struct call tail = invoked (id, slot);
    tail.return_address = record[2] & ((1UL << WIRE_FUNCTION_HIGH_SHIFT) - 1);
    CHECK (is_ours (tail.return_address), "%#lx", tail.return_address);
    check_enter (record, WIRE_KIND_ENTER_TAIL, &tail, id == 2 && others_xmm ? 4 : 0, in);
  }
  check_leave (take (tape), slot, give.gpr[RAX], give.gpr[RDX], first_xmm ? out : NULL);
  CHECK (at_end (tape));
}

void
case_a_tail_call_keeps_the_slot (void)
{
  struct tape tape = { 0 };
  look_at_the_processor ();
  for (int i = 0; i < 4; i++)
    check_tail_calls (&tape, i & 1, i >> 1);
  /* By the slow side, too. */
  for (uint64_t left = 0; left < 400; left += 24)
  {
    fill (left);
    check_tail_calls (&tape, left / 24 & 1, 0);
  }
}
