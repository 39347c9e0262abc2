/* The end of a ring, and a ring without room. */
#define _GNU_SOURCE
#include "driver.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#define CALL_BYTES (HS_ENTER_BYTES + HS_LEAVE_BYTES)
/* More calls than a ring holds. */
#define MANY (2 * HS_RING_BYTES / CALL_BYTES)

static uint64_t
call_work (void * stub, uint64_t n)
{
  uint64_t result = shim (n, ~n, n + 2, n + 3, n + 4, n + 5, stub);
  EQUAL (result, n * 3 + ~n);
  return result;
}

static void
expect_call (struct tape * tape, uint32_t id, uint64_t n)
{
  struct call call = SHIM_CALL (id, work_slot, n, ~n, n + 2, n + 3, n + 4, n + 5);
  expect_enter (tape, WIRE_KIND_ENTER, &call);
  expect_leave (tape, work_slot, n * 3 + ~n);
}

/* Drained after each call: every position near the end is tried, with what
 * does not fit being an enter or a leave. */
void
case_a_lap_ends_and_the_next_begins (void)
{
  struct tape tape = { 0 };
  void * stub = traced ((void *) work, 5, 0, 0);
  uint64_t laps = 0, before;
  for (uint64_t left = 0; left < 600; left += 8)
  {
    fill (left);
    before = ring_head (my_ring ());
    for (uint64_t n = 0; n < 12; n++)
    {
      call_work (stub, n);
      laps += rings[my_ring ()].head < before;
      before = rings[my_ring ()].head;
      drain (&tape, my_ring ());
      expect_call (&tape, 5, n);
      CHECK (at_end (&tape));
    }
  }
  EQUAL (laps, 600 / 8);
}

/* Nobody reads: what does not fit is counted, and told when there is room. */
void
case_a_full_ring_drops_and_counts (void)
{
  struct tape tape = { 0 };
  void * stub = traced ((void *) work, 6, 0, 0);
  control->drop_when_full = 1;
  for (int round = 0; round < 3; round++)
  {
    uint64_t kept = 0, enters = 0;
    for (uint64_t n = 0; n < MANY; n++)
      call_work (stub, n);
    uint64_t lost = rings[my_ring ()].lost;
    rings[my_ring ()].lost = 0;
    CHECK (lost > MANY / 4, "%lu", lost);
    drain (&tape, my_ring ());
    call_work (stub, MANY);
    drain (&tape, my_ring ());
    if (round == 0)
      expect_thread (&tape);
    /* A call whose enter was lost has no leave; one at the edge may lack its leave alone. */
    for (;; kept++)
    {
      uint64_t * record = take (&tape);
      if (kind_of (record) == WIRE_KIND_GAP)
      {
        tape.next -= WIRE_GAP_WORDS;
        break;
      }
      enters += kind_of (record) == WIRE_KIND_ENTER;
      CHECK (kind_of (record) == (kept % 2 == 0 ? WIRE_KIND_ENTER : WIRE_KIND_LEAVE),
             "record %lu of round %d is of kind %u", kept, round, kind_of (record));
      if (kind_of (record) == WIRE_KIND_ENTER)
        EQUAL (record[3], kept / 2);
    }
    /* One lost leave, if an enter is alone; the other lost records are enters. */
    EQUAL (lost, MANY - enters + kept % 2);
    expect_gap (&tape, HS_GAP_FULL, lost);
    expect_call (&tape, 6, MANY);
    CHECK (at_end (&tape));
    tape.count = tape.next = 0;
  }
}

/* A large record does not fit, a small one behind it does. */
void
case_the_gap_precedes_the_next_record (void)
{
  struct tape tape = { 0 };
  void * stub = traced ((void *) work, 6, 0, 0);
  control->drop_when_full = 1;
  for (uint64_t left = 4000; left >= 2 * CALL_BYTES + WIRE_GAP_WORDS * 8; left -= 50)
  {
    fill (left);
    int ring = my_ring ();
    uint64_t lost = rings[ring].lost, from = ring_head (ring);
    rings[ring].tail = ring_base (ring) + 8; /* no lap can begin */
    output (4096);
    EQUAL (rings[ring].lost, lost + 1);
    call_work (stub, left);
    call_work (stub, left + 1);
    rings[ring].tail = from;
    drain (&tape, ring);
    expect_gap (&tape, HS_GAP_FULL, 1);
    expect_call (&tape, 6, left);
    expect_call (&tape, 6, left + 1);
    CHECK (at_end (&tape));
  }
}

static void *
call_many (void * stub)
{
  for (uint64_t n = 0; n < MANY; n++)
    call_work (stub, n);
  return (void *) work_slot;
}

/* Waits until the thread with the first ring asks for leave to sleep, which
 * it does only when it waits for room; then lets it. */
static int
wait_until_full (void)
{
  while (rings[0].waits == rings[0].may_sleep)
    sched_yield ();
  for (int look = 0; look < 1000; look++)
    CHECK (thread_state ((int) rings[0].tid) == 'R', "it may not sleep yet");
  rings[0].may_sleep = rings[0].waits;
  while (thread_state ((int) rings[0].tid) != 'S')
    sched_yield ();
  return 0;
}

/* The thread waits where nobody reads, and nothing is lost. */
void
case_a_full_ring_blocks (void)
{
  struct tape tape = { 0 };
  pthread_t thread;
  void * slot;
  CHECK (pthread_create (&thread, NULL, call_many, traced ((void *) work, 7, 0, 0)) == 0);
  int ring = wait_until_full ();
  CHECK (ring_head (ring) + HS_ENTER_BYTES > ring_end (ring) - HS_GUARD_BYTES);
  while (pthread_tryjoin_np (thread, &slot) != 0)
    drain (&tape, ring);
  drain (&tape, ring);
  work_slot = (uint64_t) slot;
  expect_thread (&tape);
  for (uint64_t n = 0; n < MANY; n++)
    expect_call (&tape, 7, n);
  EQUAL (kind_of (take (&tape)), WIRE_KIND_THREAD_EXIT);
  CHECK (at_end (&tape));
  EQUAL (rings[ring].lost, 0);
}

#define IN_HANDLER 0xabc
static void * handler_stub;
static volatile uint64_t handled;

static NOINLINE uint64_t
work_in_handler (uint64_t n)
{
  return ~n;
}

static void
on_signal (int number)
{
  (void) number;
  EQUAL (shim (handled, 0, 0, 0, 0, 0, handler_stub), ~handled);
  handled++;
}

/* No signal comes once the thread is about to end. */
static void *
call_many_and_block (void * stub)
{
  sigset_t all;
  call_many (stub);
  sigfillset (&all);
  CHECK (pthread_sigmask (SIG_BLOCK, &all, NULL) == 0);
  return NULL;
}

/* A leave ends the innermost call that is open. */
static void
close_call (const uint64_t * leave, uint64_t ids[2], const uint64_t slots[2])
{
  int inner = ids[1] != 0;
  CHECK (ids[inner] != 0, "a leave without an enter");
  EQUAL (leave[1] >> WIRE_SLOT_POSITION, slots[inner]);
  ids[inner] = 0;
}

/* Signals arrive while the thread waits for room, and all the time after. Its
 * handler's calls lie whole between or inside its own. */
void
case_signals_find_a_thread_that_waits (void)
{
  struct tape tape = { 0 };
  pthread_t thread;
  struct sigaction action = { .sa_handler = on_signal };
  uint64_t calls[2] = { 0 }, ids[2] = { 0 }, slots[2];
  CHECK (sigaction (SIGUSR1, &action, NULL) == 0);
  handler_stub = traced ((void *) work_in_handler, IN_HANDLER, 0, 0);
  CHECK (pthread_create (&thread, NULL, call_many_and_block, traced ((void *) work, 7, 0, 0)) == 0);
  int ring = wait_until_full ();
  CHECK (pthread_kill (thread, SIGUSR1) == 0);
  while (pthread_tryjoin_np (thread, NULL) != 0)
  {
    pthread_kill (thread, SIGUSR1);
    drain (&tape, ring);
  }
  drain (&tape, ring);
  expect_thread (&tape);
  for (uint64_t * record = take (&tape); kind_of (record) != WIRE_KIND_THREAD_EXIT; record = take (&tape))
  {
    uint64_t id = record[1] >> WIRE_VALUE_SHIFT & ((1U << WIRE_FUNCTION_LOW_BITS) - 1);
    int inner = id == IN_HANDLER;
    if (kind_of (record) == WIRE_KIND_LEAVE)
    {
      close_call (record, ids, slots);
      continue;
    }
    EQUAL (kind_of (record), WIRE_KIND_ENTER);
    EQUAL (record[3], calls[inner]++);
    EQUAL (ids[inner], 0);
    ids[inner] = id;
    slots[inner] = record[1] >> WIRE_SLOT_POSITION;
  }
  EQUAL (calls[0], MANY);
  EQUAL (calls[1], handled);
  CHECK (handled > 0);
  EQUAL (ids[0] | ids[1], 0);
  EQUAL (rings[ring].lost, 0);
}
