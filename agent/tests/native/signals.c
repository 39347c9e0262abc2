/* Signal handlers that call traced functions, at every instruction of a traced
 * call: the trap flag makes each one raise SIGTRAP, and the handler acts at one
 * of them, then at the next in the next call. */
#define _GNU_SOURCE
#include "driver.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unwind.h>

#define OUTER 10
#define INNER 20
/* More instructions than a traced call takes on any way. */
#define MOST_STEPS 4000

extern void * jump_target;
void jump_on (void);
uint64_t red_zone_leaf (uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static uint64_t steps, only_at; /* 0: the handler acts at every step */
static int acted, unwound;
static uint64_t inner_slots[MOST_STEPS];
static void * inner_stub;
static sigjmp_buf back;
static enum { CALL, JUMP_OUT, UNWIND } act;

static NOINLINE uint64_t
inner (uint64_t step, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
  (void) b, (void) c, (void) d, (void) e, (void) f;
  inner_slots[step] = SLOT ();
  return ~step;
}

#define DEEPEST 64
static uintptr_t frames[DEEPEST], expected_frames[DEEPEST];
static int frame_count, expected_count;

static _Unwind_Reason_Code
note_frame (struct _Unwind_Context * context, void * argument)
{
  (void) argument;
  if (frame_count < DEEPEST)
    frames[frame_count++] = _Unwind_GetIP (context);
  return _URC_NO_REASON;
}

/* The frames above the one that called step_shim must be those that were
 * there before; and step_shim's own must be found. */
static void
check_unwinding (uintptr_t pc)
{
  int shim_seen = 0;
  if (!is_ours (pc) && (pc < (uintptr_t) step_shim || pc >= (uintptr_t) step_shim_end))
    return; /* stubs have no unwind tables */
  unwound++;
  frame_count = 0;
  _Unwind_Backtrace (note_frame, NULL);
  for (int i = 0; i < frame_count; i++)
    shim_seen |= frames[i] >= (uintptr_t) step_shim && frames[i] < (uintptr_t) step_shim_end;
  CHECK (shim_seen, "from %#lx at step %lu", pc, steps);
  CHECK (frame_count >= expected_count, "from %#lx at step %lu only %d frames", pc, steps, frame_count);
  CHECK (memcmp (frames + frame_count - expected_count, expected_frames,
                 (size_t) expected_count * sizeof (frames[0])) == 0, "from %#lx", pc);
}

static void
on_trap (int number, siginfo_t * info, void * context)
{
  (void) number, (void) info;
  steps++;
  CHECK (steps < MOST_STEPS);
  if (only_at != 0 && steps != only_at)
    return;
  acted = 1;
  if (act == UNWIND)
    check_unwinding ((uintptr_t) ((ucontext_t *) context)->uc_mcontext.gregs[REG_RIP]);
  else
    EQUAL (shim (steps, 1, 2, 3, 4, 5, inner_stub), ~steps);
  if (act == JUMP_OUT)
    siglongjmp (back, 1);
}

static void
handle_traps (void)
{
  struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
  CHECK (sigaction (SIGTRAP, &action, NULL) == 0);
  inner_stub = traced ((void *) inner, INNER, 0, 0);
}

/* Calls `stub` with a trap after each instruction; returns the call's slot. */
static NOINLINE uint64_t
step_through (void * stub)
{
  steps = 0;
  acted = 0;
  EQUAL (step_shim (7, 8, 9, 10, 11, 12, stub), 7 * 3 + 8);
  return work_slot;
}

static struct call
outer_call (uint32_t id, uint64_t slot)
{
  return (struct call) { id, slot, (uint64_t) step_returns, { 7, 8, 9, 10, 11, 12 } };
}

/* What of the stepped call was found on the tape. */
struct found
{
  uint64_t inner_enters, inner_leaves, outer_enters, outer_tails, outer_leaves, gaps, lost;
};

/* Checks each record's content. A handler's two follow each other; the
 * interrupted one's lie between or around them. */
static struct found
read_records (struct tape * tape, uint64_t slot, unsigned xmm)
{
  struct found found = { 0 };
  while (!at_end (tape))
  {
    uint64_t * record = take (tape);
    uint64_t id = record[1] >> WIRE_VALUE_SHIFT & ((1U << WIRE_FUNCTION_LOW_BITS) - 1);
    unsigned kind = kind_of (record);
    if (kind == WIRE_KIND_GAP)
    {
      found.gaps++;
      found.lost += record[2];
    }
    else if (kind == WIRE_KIND_ENTER && id == INNER)
    {
      uint64_t step = record[3];
      struct call call = SHIM_CALL (INNER, inner_slots[step], step, 1, 2, 3, 4, 5);
      check_enter (record, WIRE_KIND_ENTER, &call, 0, NULL);
      found.inner_enters++;
    }
    else if (kind == WIRE_KIND_ENTER || kind == WIRE_KIND_ENTER_TAIL)
    {
      struct call call = outer_call (OUTER + (kind == WIRE_KIND_ENTER_TAIL), slot);
      if (kind == WIRE_KIND_ENTER_TAIL)
        call.return_address = record[2];
      found.outer_tails += kind == WIRE_KIND_ENTER_TAIL;
      found.outer_enters += kind == WIRE_KIND_ENTER;
      uint64_t some[8];
      memcpy (some, record + WIRE_ENTER_WORDS, sizeof (some));
      check_enter (record, kind, &call, kind == WIRE_KIND_ENTER ? xmm : 0, some);
    }
    else if (kind == WIRE_KIND_LEAVE && record[2] == 7 * 3 + 8)
    {
      uint64_t some[2] = { record[4], record[5] };
      check_leave (record, slot, record[2], record[3], xmm ? some : NULL);
      found.outer_leaves++;
    }
    else if (kind == WIRE_KIND_LEAVE)
    {
      uint64_t step = ~record[2];
      check_leave (record, inner_slots[step], record[2], record[3], NULL);
      found.inner_leaves++;
    }
    else
      EQUAL (kind, WIRE_KIND_OUTPUT);
  }
  return found;
}

static void
forget (struct tape * tape)
{
  drain (tape, my_ring ());
  tape->count = tape->next = 0;
}

static void
step_everywhere (void * stub, unsigned xmm, uint64_t tails)
{
  struct tape tape = { 0 };
  handle_traps ();
  shim (0, 0, 0, 0, 0, 0, inner_stub); /* so that there is a ring */
  for (only_at = acted = 1; acted; only_at++)
  {
    forget (&tape);
    uint64_t slot = step_through (stub);
    drain (&tape, my_ring ());
    struct found found = read_records (&tape, slot, xmm);
    EQUAL (found.inner_enters, acted);
    EQUAL (found.inner_leaves, acted);
    EQUAL (found.outer_enters, 1);
    EQUAL (found.outer_tails, tails);
    EQUAL (found.outer_leaves, 1);
    EQUAL (found.gaps, 0);
  }
  CHECK (only_at > 80, "%lu", only_at);
}

void
case_signals_find_any_instruction_of_a_call (void)
{
  step_everywhere (traced ((void *) work, OUTER, 0, 0), 0, 0);
}

void
case_signals_find_any_instruction_of_a_call_with_vectors (void)
{
  step_everywhere (traced ((void *) work, OUTER, 8, 1), 8, 0);
}

void
case_signals_find_any_instruction_of_a_tail_call (void)
{
  jump_target = traced ((void *) work, OUTER + 1, 0, 0);
  step_everywhere (traced ((void *) jump_on, OUTER, 0, 0), 0, 1);
}

/* At which place of the lap a call is stepped through: its enter, or its
 * leave, is the record that does not fit any more. */
static const uint64_t lefts[] = { 0, HS_ENTER_BYTES + 24 };

/* Acts at one instruction only, for each instruction of calls that end a lap. */
void
case_a_signal_at_the_end_of_a_lap_loses_nothing (void)
{
  struct tape tape = { 0 };
  void * stub = traced ((void *) work, OUTER, 0, 0);
  handle_traps ();
  for (int place = 0; place < 2; place++)
    for (only_at = acted = 1; acted; only_at++)
    {
      fill (lefts[place]);
      forget (&tape);
      uint64_t slot = step_through (stub);
      drain (&tape, my_ring ());
      struct found found = read_records (&tape, slot, 0);
      CHECK (found.inner_enters == (uint64_t) acted && found.inner_leaves == (uint64_t) acted
                 && found.outer_enters == 1 && found.outer_leaves == 1 && found.gaps == 0,
             "at step %lu of %lu, place %d: %lu %lu inner, %lu %lu outer", only_at, steps, place,
             found.inner_enters, found.inner_leaves, found.outer_enters, found.outer_leaves);
    }
  CHECK (only_at > 100);
}

/* The same where nobody has read: all that was lost is told. */
void
case_a_signal_in_a_full_ring_is_counted (void)
{
  struct tape tape = { 0 };
  void * stub = traced ((void *) work, OUTER, 0, 0);
  handle_traps ();
  control->drop_when_full = 1;
  for (int place = 0; place < 2; place++)
    for (only_at = acted = 1; acted; only_at++)
    {
      fill (lefts[place]);
      int ring = my_ring ();
      forget (&tape);
      /* Close behind the end: no lap can begin. */
      rings[ring].tail = ring_base (ring) + 8;
      uint64_t before = rings[ring].lost, from = ring_head (ring);
      uint64_t slot = step_through (stub);
      uint64_t lost = rings[ring].lost - before;
      rings[ring].tail = from;
      uint64_t called = shim (0, 1, 2, 3, 4, 5, inner_stub);
      EQUAL (called, ~0UL);
      drain (&tape, ring);
      struct found found = read_records (&tape, slot, 0);
      EQUAL (found.lost, lost);
      CHECK (lost > 0);
      /* An enter that was lost lost its leave, too, which nobody counts. */
      CHECK (found.inner_enters >= 1 && found.inner_enters <= 2 && found.outer_enters <= 1, "step %lu", only_at);
      CHECK (found.inner_leaves <= found.inner_enters && found.outer_leaves <= found.outer_enters);
    }
  CHECK (only_at > 100);
}

static NOINLINE void
jump_out_once (void * stub)
{
  if (sigsetjmp (back, 1) == 0)
    step_through (stub);
}

/* A handler never comes back; what it interrupted may be torn, the next call
 * is recorded and seen. */
static void
jump_out_everywhere (void * stub, int at_end_of_lap)
{
  struct tape tape = { 0 };
  act = JUMP_OUT;
  for (only_at = acted = 1; acted; only_at++)
  {
    if (at_end_of_lap)
      fill (24);
    else
      shim (1, 1, 2, 3, 4, 5, inner_stub);
    forget (&tape);
    jump_out_once (stub);
    EQUAL (shim (0, 1, 2, 3, 4, 5, inner_stub), ~0UL);
    drain (&tape, my_ring ());
    CHECK (tape.count * 8 >= HS_ENTER_BYTES + HS_LEAVE_BYTES, "step %lu", only_at);
    tape.next = tape.count - (HS_ENTER_BYTES + HS_LEAVE_BYTES) / 8;
    struct call call = SHIM_CALL (INNER, inner_slots[0], 0, 1, 2, 3, 4, 5);
    expect_enter (&tape, WIRE_KIND_ENTER, &call);
    expect_leave (&tape, inner_slots[0], ~0UL);
  }
  CHECK (only_at > 60);
}

void
case_jumping_out_of_any_instruction_is_survived (void)
{
  handle_traps ();
  jump_out_everywhere (traced ((void *) work, OUTER, 0, 0), 0);
  jump_out_everywhere (traced ((void *) work, OUTER, 4, 1), 0);
  jump_out_everywhere (traced ((void *) work, OUTER, 0, 0), 1);
}

static NOINLINE void
note_expected_frames (void)
{
  frame_count = 0;
  _Unwind_Backtrace (note_frame, NULL);
  /* Without this function and its caller, whose own place moves on. */
  expected_count = frame_count - 2;
  memcpy (expected_frames, frames + 2, (size_t) expected_count * sizeof (frames[0]));
  CHECK (expected_count >= 3, "%d", expected_count);
}

void
case_unwinders_find_the_way_from_any_instruction (void)
{
  struct tape tape = { 0 };
  void * plain = traced ((void *) work, OUTER, 0, 0), * vectors = traced ((void *) work, OUTER, 8, 1);
  void * jumping = traced ((void *) jump_on, OUTER, 0, 0);
  jump_target = traced ((void *) work, OUTER + 1, 2, 0);
  handle_traps ();
  note_expected_frames ();
  act = UNWIND;
  step_through (plain); /* gets the ring, by the slow side */
  step_through (plain);
  step_through (vectors);
  step_through (jumping);
  for (int place = 0; place < 2; place++)
  {
    fill (lefts[place]);
    forget (&tape);
    step_through (place == 0 ? plain : vectors);
  }
  CHECK (unwound > 500, "%d", unwound);
}

/* The signal comes in the leaf itself, which is traced as well. */
void
case_the_red_zone_is_kept (void)
{
  void * leaf = traced ((void *) red_zone_leaf, 1, 0, 0);
  handle_traps ();
  for (int i = 0; i < 3; i++)
  {
    steps = (uint64_t) i;
    EQUAL (shim (0, 0, 0, 0, 0, 0, leaf), 0);
    EQUAL (steps, i + 1);
  }
}
