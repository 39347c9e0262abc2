/* Signal handlers that call traced functions, at every instruction of a traced
 * call: the handler acts at one of them, then at the next in the next call. */
#define _GNU_SOURCE
#include "steps.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

extern void * jump_target;
void jump_on (void);
uint64_t red_zone_leaf (uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

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
step_everywhere (void * stub, unsigned xmm, uint64_t tails)
{
  struct tape tape = { 0 };
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
  handle_traps (0);
  step_everywhere (traced ((void *) work, OUTER, 0, 0), 0, 0);
}

void
case_signals_find_any_instruction_of_a_call_with_vectors (void)
{
  handle_traps (0);
  step_everywhere (traced ((void *) work, OUTER, 8, 1), 8, 0);
}

static void
step_everywhere_here (void * stub)
{
  step_everywhere (stub, 0, 0);
}

/* On the alternate stack, and far from where the thread began. */
void
case_signals_on_other_stacks_find_any_instruction_of_a_call (void)
{
  void * stub = traced ((void *) work, OUTER, 0, 0);
  handle_traps (SA_ONSTACK);
  make_other_stack ();
  step_everywhere (stub, 0, 0);
  run_deep_down (step_everywhere_here, stub);
  handle_traps (0);
  run_deep_down (step_everywhere_here, stub);
}

void
case_signals_find_any_instruction_of_a_tail_call (void)
{
  jump_target = traced ((void *) work, OUTER + 1, 0, 0);
  handle_traps (0);
  step_everywhere (traced ((void *) jump_on, OUTER, 0, 0), 0, 1);
}

/* Acts at one instruction only, for each instruction of calls that end a lap. */
void
case_a_signal_at_the_end_of_a_lap_loses_nothing (void)
{
  struct tape tape = { 0 };
  void * stub = traced ((void *) work, OUTER, 0, 0);
  handle_traps (0);
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
  handle_traps (0);
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

/* The recording ends, and the handler's calls are the first to notice. */
static void
end_the_recording (uint64_t pc)
{
  control->stop = 1;
  call_inner (pc);
}

/* Room for one enter is left, and no lap can begin: what comes next waits. */
static void *
step_to_the_end (void * stub)
{
  fill (HS_ENTER_BYTES + 24);
  int ring = my_ring ();
  rings[ring].tail = ring_base (ring) + 8;
  step_through (stub);
  return stub;
}

/* The interrupted call may have found room already, or may be waiting for it:
 * it goes on, and writes nowhere but into its ring. A thread that was turned
 * off stays so, hence one for each instruction. */
void
case_a_signal_may_find_the_recording_ended (void)
{
  void * stub = traced ((void *) work, OUTER, 0, 0);
  handle_traps (0);
  act = end_the_recording;
  for (only_at = 1; only_at <= 200; only_at++)
  {
    pthread_t thread;
    CHECK (pthread_create (&thread, NULL, step_to_the_end, stub) == 0);
    CHECK (pthread_join (thread, NULL) == 0);
    CHECK (acted, "not at step %lu", only_at);
    control->stop = 0;
    memset ((void *) control->taken, 0, sizeof (control->taken));
    for (int ring = 0; ring < HS_RINGS; ring++)
      memset ((void *) &rings[ring], 0, sizeof (rings[ring]));
  }
}

/* The signal comes in the leaf itself, which is traced as well. */
void
case_the_red_zone_is_kept (void)
{
  void * leaf = traced ((void *) red_zone_leaf, 1, 0, 0);
  handle_traps (0);
  for (int i = 0; i < 3; i++)
  {
    steps = (uint64_t) i;
    EQUAL (shim (0, 0, 0, 0, 0, 0, leaf), 0);
    EQUAL (steps, i + 1);
  }
}
