/* Threads: getting a ring, having none, ending, and what they do when the
 * recorder has gone. */
#define _GNU_SOURCE
#include "driver.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* More calls than a ring holds. */
#define MANY (2 * HS_RING_BYTES / (HS_ENTER_BYTES + HS_LEAVE_BYTES))

static void * stub;

static void
call_work (uint64_t n)
{
  EQUAL (shim (n, 1, 2, 3, 4, 5, stub), n * 3 + 1);
}

static void
run_thread (void * (* body) (void *), void * argument)
{
  pthread_t thread;
  CHECK (pthread_create (&thread, NULL, body, argument) == 0);
  CHECK (pthread_join (thread, NULL) == 0);
}

static int
has_ring (void)
{
  uint32_t tid = (uint32_t) syscall (SYS_gettid);
  for (int ring = 0; ring < HS_RINGS; ring++)
    if (rings[ring].tid == tid)
      return 1;
  return 0;
}

static void *
call_on_without_recorder (void * ended)
{
  call_work (0);
  int ring = my_ring ();
  uint32_t owner = control->owner;
  if (ended == NULL)
    control->stop = 1;
  else
    control->owner = *(uint32_t *) ended;
  for (uint64_t n = 0; n < MANY; n++)
    call_work (n);
  /* Nor does it begin again when there is room. */
  uint64_t head = ring_head (ring);
  rings[ring].tail = head;
  for (uint64_t n = 0; n < MANY; n++)
    call_work (n);
  EQUAL (ring_head (ring), head);
  EQUAL (rings[ring].lost, 0);
  control->owner = owner;
  control->stop = 0;
  return NULL;
}

static void *
call_without_recorder (void * unused)
{
  call_work (1);
  CHECK (!has_ring ());
  return unused;
}

void
case_a_dead_recorder_stops_nobody (void)
{
  uint32_t owners[] = { (uint32_t) getpid () | FUTEX_OWNER_DIED, FUTEX_OWNER_DIED, 0 };
  stub = traced ((void *) work, 1, 0, 0);
  for (int i = 0; i < 3; i++)
    run_thread (call_on_without_recorder, &owners[i]);
  run_thread (call_on_without_recorder, NULL);
  control->owner |= FUTEX_OWNER_DIED;
  run_thread (call_without_recorder, NULL);
}

/* Leaves only these rings. */
static void
take_all_rings_but (int first, int second)
{
  for (int word = 0; word < HS_RINGS / 64; word++)
    control->taken[word] = ~0UL;
  control->taken[first / 64] &= ~(1UL << first % 64);
  control->taken[second / 64] &= ~(1UL << second % 64);
}

static void *
call_with_ring (void * expected)
{
  call_work (2);
  EQUAL (my_ring (), *(int *) expected);
  return NULL;
}

static void
expect_one_call (int ring, uint64_t n)
{
  struct tape tape = { 0 };
  drain (&tape, ring);
  expect_thread (&tape);
  struct call call = { 1, 0, (uint64_t) shim_returns, { n, 1, 2, 3, 4, 5 } };
  uint64_t * record = take (&tape);
  call.slot = record[1] >> WIRE_SLOT_POSITION << WIRE_SLOT_SHIFT;
  check_enter (record, WIRE_KIND_ENTER, &call, 0, NULL);
  expect_leave (&tape, call.slot, n * 3 + 1);
}

static void *
call_without_ring (void * unused)
{
  for (uint64_t n = 0; n < 100; n++)
    call_work (n);
  CHECK (!has_ring ());
  EQUAL (control->lost_no_ring, 100);
  control->taken[HS_RINGS / 64 - 1] &= ~(1UL << 63); /* the last one is given back */
  call_work (3);
  EQUAL (my_ring (), HS_RINGS - 1);
  EQUAL (control->lost_no_ring, 100);
  expect_one_call (HS_RINGS - 1, 3);
  return unused;
}

void
case_threads_without_a_ring_are_counted (void)
{
  int first = 63, second = 64;
  stub = traced ((void *) work, 1, 0, 0);
  control->drop_when_full = 1;
  take_all_rings_but (first, second);
  run_thread (call_with_ring, &first);
  run_thread (call_with_ring, &second);
  run_thread (call_without_ring, NULL);
  for (int word = 0; word < HS_RINGS / 64; word++)
    EQUAL (control->taken[word], ~0UL);
}

static volatile uint32_t waiting_tid;

/* How long a thread waits is bounded, so that it may try more than once. */
static void *
call_until_ring (void * tries)
{
  waiting_tid = (uint32_t) syscall (SYS_gettid);
  do
  {
    call_work (*(uint64_t *) tries);
    ++*(uint64_t *) tries;
  }
  while (!has_ring ());
  return NULL;
}

void
case_a_thread_waits_for_a_ring (void)
{
  uint64_t tries = 0;
  pthread_t thread;
  stub = traced ((void *) work, 1, 0, 0);
  take_all_rings_but (0, 0);
  control->taken[0] |= 1;
  CHECK (pthread_create (&thread, NULL, call_until_ring, &tries) == 0);
  while (waiting_tid == 0 || thread_state ((int) waiting_tid) != 'S')
    sched_yield ();
  control->taken[0] &= ~1UL;
  CHECK (pthread_join (thread, NULL) == 0);
  EQUAL (control->lost_no_ring, tries - 1);
  expect_one_call (0, tries - 1);
}

static void
call_at_end (void * n)
{
  call_work ((uint64_t) n);
}

static void *
call_and_end (void * later_key)
{
  struct tape tape = { 0 };
  CHECK (prctl (PR_SET_NAME, "a worker") == 0);
  CHECK (pthread_setspecific (*(pthread_key_t *) later_key, (void *) 5) == 0);
  call_work (4);
  drain (&tape, my_ring ());
  uint64_t high = (uint64_t) pthread_self ();
  check_thread (take (&tape), high - STACK_BYTES, high, "a worker");
  EQUAL (rings[my_ring ()].exiting, 0);
  return (void *) (uint64_t) syscall (SYS_gettid);
}

/* One after the other; what destructors do after the thread's end was told is
 * recorded, and the ring stays taken until the recorder gives it back. */
void
case_a_thread_has_its_own_ring (void)
{
  pthread_key_t later_key;
  stub = traced ((void *) work, 1, 0, 0);
  CHECK (pthread_key_create (&later_key, call_at_end) == 0);
  for (int ring = 0; ring < 3; ring++)
  {
    pthread_t thread;
    void * tid;
    struct tape tape = { 0 };
    CHECK (pthread_create (&thread, NULL, call_and_end, &later_key) == 0);
    CHECK (pthread_join (thread, &tid) == 0);
    EQUAL (rings[ring].tid, tid);
    EQUAL (rings[ring].exiting, 1);
    CHECK (rings[ring].began.clock_ns < rings[ring].ended.clock_ns);
    CHECK (rings[ring].began.ran_ns < rings[ring].ended.ran_ns);
    CHECK (rings[ring].began.sleeps <= rings[ring].ended.sleeps);
    EQUAL (control->taken[0], (2UL << ring) - 1);
    drain (&tape, ring);
    EQUAL (take (&tape)[1], (uint64_t) tid << WIRE_VALUE_SHIFT | WIRE_KIND_THREAD_EXIT);
    EQUAL (take (&tape)[3], 5);
    EQUAL (take (&tape)[2], 5 * 3 + 1);
    CHECK (at_end (&tape));
  }
}
