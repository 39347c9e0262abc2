/* Handlers that never come back, and unwinders, at any instruction of a call. */
#define _GNU_SOURCE
#include "steps.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <unwind.h>

extern void * jump_target;
void jump_on (void);

static sigjmp_buf back;

static void
call_and_jump_out (uint64_t pc)
{
  call_inner (pc);
  siglongjmp (back, 1);
}

/* If not NULL, steps are made in a handler that runs on the alternate stack. */
static void * volatile stepped_in_handler;

static void
step_in_handler (int number)
{
  (void) number;
  step_through (stepped_in_handler);
}

static NOINLINE void
jump_out_once (void * stub)
{
  if (sigsetjmp (back, 1) != 0)
    return;
  if (stepped_in_handler != NULL)
    raise (SIGUSR1);
  else
    step_through (stub);
}

/* A handler never comes back; what it interrupted may be torn, the next call
 * is recorded and seen. */
static void
jump_out_everywhere (void * stub, int at_end_of_lap)
{
  struct tape tape = { 0 };
  act = call_and_jump_out;
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
  handle_traps (0);
  jump_out_everywhere (traced ((void *) work, OUTER, 0, 0), 0);
  jump_out_everywhere (traced ((void *) work, OUTER, 4, 1), 0);
  jump_out_everywhere (traced ((void *) work, OUTER, 0, 0), 1);
}

static void
jump_out_here (void * stub)
{
  jump_out_everywhere (stub, 0);
}

void
case_jumping_out_is_survived_on_other_stacks (void)
{
  void * stub = traced ((void *) work, OUTER, 0, 0);
  struct sigaction action = { .sa_handler = step_in_handler, .sa_flags = SA_ONSTACK };
  handle_traps (0);
  run_deep_down (jump_out_here, stub);
  handle_traps (SA_ONSTACK);
  run_deep_down (jump_out_here, stub);
  make_other_stack ();
  CHECK (sigaction (SIGUSR1, &action, NULL) == 0);
  stepped_in_handler = stub;
  jump_out_everywhere (stub, 0);
}

static int unwound;
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
check_unwinding (uint64_t pc)
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
  handle_traps (0);
  note_expected_frames ();
  act = check_unwinding;
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
