/* Traps after each instruction, and the stacks on which that is done. */
#define _GNU_SOURCE
#include "steps.h"

#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

uint64_t steps, only_at, inner_slots[MOST_STEPS];
int acted;
void * inner_stub;
void (* act) (uint64_t) = call_inner;

static NOINLINE uint64_t
inner (uint64_t step, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
  (void) b, (void) c, (void) d, (void) e, (void) f;
  inner_slots[step] = SLOT ();
  return ~step;
}

void
call_inner (uint64_t pc)
{
  (void) pc;
  EQUAL (shim (steps, 1, 2, 3, 4, 5, inner_stub), ~steps);
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
  act ((uint64_t) ((ucontext_t *) context)->uc_mcontext.gregs[REG_RIP]);
}

void
handle_traps (int flags)
{
  struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | flags };
  CHECK (sigaction (SIGTRAP, &action, NULL) == 0);
  inner_stub = traced ((void *) inner, INNER, 0, 0);
}

void
make_other_stack (void)
{
  stack_t other = { .ss_sp = malloc (1 << 20), .ss_size = 1 << 20 };
  CHECK (sigaltstack (&other, NULL) == 0);
}

NOINLINE uint64_t
step_through (void * stub)
{
  steps = 0;
  acted = 0;
  EQUAL (step_shim (7, 8, 9, 10, 11, 12, stub), 7 * 3 + 8);
  return work_slot;
}

void
forget (struct tape * tape)
{
  drain (tape, my_ring ());
  tape->count = tape->next = 0;
}

#define LEVEL_BYTES (64 << 10)

struct deep
{
  void (* body) (void *);
  void * argument;
};

static NOINLINE uint64_t
go_down (uint64_t levels, const struct deep * deep)
{
  volatile char room[LEVEL_BYTES];
  room[0] = 1;
  if (levels != 0)
    return go_down (levels - 1, deep) + (uint64_t) room[0];
  deep->body (deep->argument);
  return (uint64_t) room[0];
}

static void *
begin_thread (void * deep)
{
  shim (0, 0, 0, 0, 0, 0, inner_stub); /* gets its ring where the bounds fit */
  make_other_stack ();
  go_down (2 * STACK_BYTES / LEVEL_BYTES, deep);
  return NULL;
}

void
run_deep_down (void (* body) (void *), void * argument)
{
  struct deep deep = { body, argument };
  pthread_attr_t attributes;
  pthread_t thread;
  CHECK (pthread_attr_init (&attributes) == 0);
  CHECK (pthread_attr_setstacksize (&attributes, 8 * STACK_BYTES) == 0);
  CHECK (pthread_create (&thread, &attributes, begin_thread, &deep) == 0);
  CHECK (pthread_join (thread, NULL) == 0);
}
