/* Calls that end in other ways than by a return, and those that return twice. */
#define _GNU_SOURCE
#include "driver.h"

#include <pthread.h>
#include <setjmp.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

static void * outer_stub, * inner_stub, * work_stub;
static uint64_t outer_slot, inner_slot;
static jmp_buf back;

static void
expect_work (struct tape * tape, uint64_t n)
{
  struct call call = SHIM_CALL (3, work_slot, n, 1, 2, 3, 4, 5);
  expect_enter (tape, WIRE_KIND_ENTER, &call);
  expect_leave (tape, work_slot, n * 3 + 1);
}

static void
call_work (uint64_t n)
{
  EQUAL (shim (n, 1, 2, 3, 4, 5, work_stub), n * 3 + 1);
}

static NOINLINE uint64_t
jump_back (void)
{
  inner_slot = SLOT ();
  longjmp (back, 1);
}

static NOINLINE uint64_t
call_inner (void)
{
  outer_slot = SLOT ();
  return shim (6, 7, 8, 9, 10, 11, inner_stub) + 1;
}

static void
make_stubs (void * inner)
{
  outer_stub = traced ((void *) call_inner, 1, 0, 0);
  inner_stub = traced (inner, 2, 0, 0);
  work_stub = traced ((void *) work, 3, 0, 0);
}

static void
expect_both_enters (struct tape * tape)
{
  struct call outer = SHIM_CALL (1, outer_slot, 0, 1, 2, 3, 4, 5);
  struct call inner = SHIM_CALL (2, inner_slot, 6, 7, 8, 9, 10, 11);
  expect_enter (tape, WIRE_KIND_ENTER, &outer);
  expect_enter (tape, WIRE_KIND_ENTER, &inner);
}

void
case_longjmp_leaves_calls_open (void)
{
  struct tape tape = { 0 };
  make_stubs ((void *) jump_back);
  for (volatile uint64_t i = 0; i < 10; i++)
  {
    if (setjmp (back) == 0)
    {
      shim (0, 1, 2, 3, 4, 5, outer_stub);
      CHECK (0, "it returned");
    }
    call_work (i);
    drain (&tape, my_ring ());
    if (i == 0)
      expect_thread (&tape);
    expect_both_enters (&tape);
    expect_work (&tape, i);
    CHECK (at_end (&tape));
  }
}

#define DEPTH 100000
static uint64_t deep_slots[DEPTH + 1];
static void * deep_stub;

static NOINLINE uint64_t
deep (uint64_t n)
{
  deep_slots[n] = SLOT ();
  return n == 0 ? 1000 : shim (n - 1, 0, 0, 0, 0, 0, deep_stub) + 1;
}

static void *
go_deep (void * unused)
{
  EQUAL (shim (DEPTH, 0, 0, 0, 0, 0, deep_stub), DEPTH + 1000);
  return unused;
}

void
case_a_hundred_thousand_frames (void)
{
  struct tape tape = { 0 };
  pthread_attr_t attributes;
  pthread_t thread;
  deep_stub = traced ((void *) deep, 4, 0, 0);
  CHECK (pthread_attr_init (&attributes) == 0);
  CHECK (pthread_attr_setstacksize (&attributes, 256 << 20) == 0);
  CHECK (pthread_create (&thread, &attributes, go_deep, NULL) == 0);
  while (pthread_tryjoin_np (thread, NULL) != 0)
    drain (&tape, 0);
  drain (&tape, 0);
  expect_thread (&tape);
  for (uint64_t n = DEPTH + 1; n-- > 0;)
  {
    uint64_t * record = take (&tape);
    struct call call = SHIM_CALL (4, deep_slots[n], n, 0, 0, 0, 0, 0);
    EQUAL (record[3], n);
    check_enter (record, WIRE_KIND_ENTER, &call, 0, NULL);
  }
  for (uint64_t n = 0; n <= DEPTH; n++)
    expect_leave (&tape, deep_slots[n], n + 1000);
}

static pid_t (* fork_it) (void);

static NOINLINE uint64_t
fork_inside (void)
{
  inner_slot = SLOT ();
  return (uint64_t) fork_it ();
}

static void
expect_good_end (pid_t child)
{
  int status;
  CHECK (waitpid (child, &status, 0) == child);
  CHECK (WIFEXITED (status) && WEXITSTATUS (status) == 0, "status %#x", status);
}

/* The child has not inherited the rings: touching one would kill it. It
 * returns through two traced calls that began in its parent. */
void
case_a_forked_child_is_silent (void)
{
  struct tape tape = { 0 };
  fork_it = (pid_t (*) (void)) replacement ("fork", (void *) fork);
  make_stubs ((void *) fork_inside);
  call_work (1);
  drain (&tape, my_ring ());
  expect_thread (&tape);
  expect_work (&tape, 1);
  uint64_t child = shim (0, 1, 2, 3, 4, 5, outer_stub) - 1;
  if (child == 0)
  {
    call_work (2);
    if (shim (0, 1, 2, 3, 4, 5, outer_stub) == 1)
      _exit (0); /* the child's own child */
    int status;
    CHECK (wait (&status) > 0 && status == 0);
    _exit (0);
  }
  expect_good_end ((pid_t) child);
  call_work (3);
  drain (&tape, my_ring ());
  expect_both_enters (&tape);
  EQUAL (take (&tape)[1], child << WIRE_VALUE_SHIFT | WIRE_KIND_FORK);
  expect_leave (&tape, inner_slot, child);
  expect_leave (&tape, outer_slot, child + 1);
  expect_work (&tape, 3);
  CHECK (at_end (&tape));
}

static pid_t (* volatile vfork_it) (void);

static NOINLINE void
work_in_child (void)
{
  for (uint64_t n = 0; n < 10; n++)
    call_work (n);
}

/* The compiler does not know that the call returns twice, so there is nothing
 * in this frame for the child to change. */
static NOINLINE pid_t
vfork_once (void)
{
  volatile pid_t child = vfork_it ();
  if (child == 0)
  {
    work_in_child ();
    _exit (0);
  }
  return child;
}

void
case_a_child_of_vfork_is_silent (void)
{
  struct tape tape = { 0 };
  make_stubs ((void *) fork_inside);
  vfork_it = (pid_t (*) (void)) replacement ("vfork", (void *) vfork);
  for (uint64_t i = 0; i < 3; i++)
  {
    /* The first time the thread has no ring yet. */
    pid_t child = vfork_once ();
    CHECK (child > 0);
    expect_good_end (child);
    call_work (i);
    drain (&tape, my_ring ());
    if (i == 0)
      expect_thread (&tape);
    EQUAL (take (&tape)[1],
        (uint64_t) child << WIRE_VALUE_SHIFT | WIRE_KIND_FORK);
    expect_work (&tape, i);
    CHECK (at_end (&tape));
  }
}

static NOINLINE uint64_t
end_thread (void)
{
  inner_slot = SLOT ();
  pthread_exit ((void *) 42);
}

static NOINLINE uint64_t
wait_for_cancel (void)
{
  inner_slot = SLOT ();
  while (pause () != 0)
    continue;
  return 0;
}

static void
note_cleanup (void * counter)
{
  ++*(int *) counter;
}

static void *
end_inside (void * cleanups)
{
  pthread_cleanup_push (note_cleanup, cleanups);
  shim (0, 1, 2, 3, 4, 5, outer_stub);
  pthread_cleanup_pop (0);
  return NULL;
}

/* Both are forced unwinding through the two frames. */
void
case_threads_may_end_inside_calls (void)
{
  for (int ring = 0; ring < 2; ring++)
  {
    struct tape tape = { 0 };
    pthread_t thread;
    void * result;
    int cleanups = 0;
    make_stubs (ring == 0 ? (void *) end_thread : (void *) wait_for_cancel);
    CHECK (pthread_create (&thread, NULL, end_inside, &cleanups) == 0);
    if (ring == 1)
    {
      while (ring_head (ring) < ring_base (ring) + WIRE_THREAD_WORDS * 8 + 2 * HS_ENTER_BYTES)
        __builtin_ia32_pause ();
      CHECK (pthread_cancel (thread) == 0);
    }
    CHECK (pthread_join (thread, &result) == 0);
    CHECK (result == (ring == 0 ? (void *) 42 : PTHREAD_CANCELED));
    EQUAL (cleanups, 1);
    drain (&tape, ring);
    expect_thread (&tape);
    expect_both_enters (&tape);
    EQUAL (kind_of (take (&tape)), WIRE_KIND_THREAD_EXIT);
    CHECK (at_end (&tape));
  }
}

static _Unwind_Reason_Code (* backtrace_it) (_Unwind_Trace_Fn, void *);
static uintptr_t frames[64];
static int frame_count;

static _Unwind_Reason_Code
note_frame (struct _Unwind_Context * context, void * argument)
{
  EQUAL (argument, frames);
  if (frame_count < 64)
    frames[frame_count++] = _Unwind_GetIP (context);
  return _URC_NO_REASON;
}

static NOINLINE uint64_t
look_back (void)
{
  frame_count = 0;
  CHECK (backtrace_it (note_frame, frames) == _URC_END_OF_STACK);
  return 1;
}

void
case_backtraces_show_no_frame_of_ours (void)
{
  uintptr_t untraced[64];
  make_stubs ((void *) look_back);
  replacement ("_Unwind_GetIP", (void *) _Unwind_GetIP);
  backtrace_it = (_Unwind_Reason_Code (*) (_Unwind_Trace_Fn, void *)) replacement ("_Unwind_Backtrace", (void *) _Unwind_Backtrace);
  for (int i = 0; i < 3; i++)
  {
    void * traced_inner = inner_stub, * traced_outer = outer_stub;
    if (i == 0)
    {
      inner_stub = (void *) look_back;
      outer_stub = (void *) call_inner;
    }
    EQUAL (shim (0, 0, 0, 0, 0, 0, outer_stub), 2);
    inner_stub = traced_inner;
    outer_stub = traced_outer;
    int shims = 0;
    for (int j = 0; j < frame_count; j++)
    {
      CHECK (!is_ours (frames[j]));
      shims += frames[j] == (uintptr_t) shim_returns;
    }
    EQUAL (shims, 2);
    if (i == 0)
      memcpy (untraced, frames, sizeof (frames));
    CHECK (memcmp (untraced, frames, (size_t) frame_count * sizeof (frames[0])) == 0);
  }
}
