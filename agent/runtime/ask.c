/* Questions to the tracer that need no stop: compiled probe code that cannot
 * decide by itself calls this with the registers; the tracer, which polls the
 * shared memory while it listens, evaluates the probe as at a trap, and
 * answers. A ptrace-stop costs fifty times as much.
 *
 * If it does not listen, or does not answer soon, the thread runs into the
 * trap, as it would without this.
 *
 * Rules of this file: as in runtime.c; also, the direction flag is the
 * program's.
 */
#include "runtime.h"
#include "system_call.h"

#include <linux/futex.h>

/* Ticks between two yields of the processor: some 5 us. The tracer may be
 * waiting for this very processor. */
#define TURN 16000
/* Turns that a question waits to be taken. */
#define PATIENCE 5
/* Places that a thread tries before it gives up asking. */
#define TRIES 4
/* The red zone that the calling convention allows below the stack pointer. */
#define RED_ZONE 128
/* The kernel's frame of a signal handler is larger than this. */
#define SIGNAL_FRAME_BYTES 512
/* The number of rsp in DWARF. */
#define RSP 7

uint64_t hs_ask (uint64_t site, const uint64_t * registers, uint64_t flags);

static uint64_t
ticks_now (void)
{
  uint32_t low, high;
  __asm__ volatile ("rdtsc" : "=a" (low), "=d" (high) : : "memory");
  return ((uint64_t) high << 32) | low;
}

static void
offer_processor (void)
{
  if (!hs_in_sandbox && hs_runtime.control->sandbox == HS_SANDBOX_SEEN)
    system_call (SYS_sched_yield, 0, 0, 0, 0);
}

#define STORE_VECTOR(n) \
  __asm__ volatile ("movups %%xmm" #n ", %0" \
                    : "=m" (*(uint64_t (*)[2]) (to + 2 * n)))

static void
store_vectors (uint64_t * to)
{
  STORE_VECTOR (0);
  STORE_VECTOR (1);
  STORE_VECTOR (2);
  STORE_VECTOR (3);
  STORE_VECTOR (4);
  STORE_VECTOR (5);
  STORE_VECTOR (6);
  STORE_VECTOR (7);
  STORE_VECTOR (8);
  STORE_VECTOR (9);
  STORE_VECTOR (10);
  STORE_VECTOR (11);
  STORE_VECTOR (12);
  STORE_VECTOR (13);
  STORE_VECTOR (14);
  STORE_VECTOR (15);
}

/* Shows the stack from the red zone on, if it is the thread's own: the ends of
 * other stacks are unknown. */
static void
show_stack (struct hs_ask * ask, const struct hs_local * local, uint64_t sp)
{
  uint64_t at = (sp - RED_ZONE) & ~7UL;
  uint64_t bytes = 0;
  if (at >= local->stack_low && at < local->stack_high)
    bytes = local->stack_high - at;
  if (bytes > HS_ASK_STACK_BYTES)
    bytes = HS_ASK_STACK_BYTES;
  bytes &= ~7UL;
  ask->stack_at = at;
  ask->stack_bytes = bytes;
  /* Not by a string instruction: the direction flag is the program's. */
  volatile uint64_t * to = ask->stack;
  const uint64_t * from = (const uint64_t *) at;
  for (uint64_t word = 0; word != bytes / 8; word++)
    to[word] = from[word];
}

static int
on_own_stack (const struct hs_local * local, uint64_t sp)
{
  return sp >= local->stack_low && sp < local->stack_high;
}

/* Has a signal handler jumped out of the wait for this answer? If not, the
 * handler that asks now has its frame below, or runs on the alternate stack. */
static int
was_abandoned (const struct hs_ask * ask, const struct hs_local * local,
               uint64_t sp)
{
  uint64_t then = ask->registers[RSP];
  int then_own = on_own_stack (local, then), now_own = on_own_stack (local, sp);
  if (ask->tid != local->tid)
    return 0;
  if (then_own != now_own)
    return now_own; /* a handler leaves its stack only for good */
  return then < sp + SIGNAL_FRAME_BYTES;
}

static struct hs_ask *
take_place (struct hs_asks * asks, const struct hs_local * local, uint64_t sp,
            unsigned * number)
{
  for (unsigned n = 0; n != TRIES; n++)
  {
    *number = (local->tid + n) % HS_ASKS;
    struct hs_ask * ask = &asks->ask[*number];
    uint64_t state = ask->state;
    if (state == HS_ASK_TAKEN
        || (state != HS_ASK_FREE && !was_abandoned (ask, local, sp)))
      continue;
    if (!__atomic_compare_exchange_n (&ask->state, &state, HS_ASK_WRITING, 0,
                                      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      continue;
    /* Before anything else, because a handler may jump out of the writing. */
    ask->registers[RSP] = sp;
    __atomic_store_n (&ask->tid, local->tid, __ATOMIC_RELEASE);
    return ask;
  }
  return NULL;
}

static void
give_back (struct hs_ask * ask)
{
  __atomic_store_n (&ask->tid, 0, __ATOMIC_RELAXED);
  __atomic_store_n (&ask->state, HS_ASK_FREE, __ATOMIC_RELEASE);
}

/* Withdraws a question; 0 if the tracer already has it. */
static int
take_back (struct hs_ask * ask)
{
  uint64_t state = HS_ASK_WAITING;
  if (!__atomic_compare_exchange_n (&ask->state, &state, HS_ASK_WRITING, 0,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return 0;
  give_back (ask);
  return 1;
}

/* Waits for the answer: 0 to continue, 1 to run into the trap. */
static uint64_t
wait_for_answer (struct hs_ask * ask)
{
  uint64_t began = ticks_now ();
  for (unsigned turns = 0;;)
  {
    uint64_t state = ask->state;
    if (state == HS_ASK_PASS || state == HS_ASK_STOP)
    {
      give_back (ask);
      return state == HS_ASK_STOP;
    }
    __builtin_ia32_pause ();
    if (ticks_now () - began < TURN)
      continue;
    if (++turns >= PATIENCE && state == HS_ASK_WAITING && take_back (ask))
      return 1;
    if (hs_runtime.control->tracer & FUTEX_OWNER_DIED)
    {
      give_back (ask);
      return 0;
    }
    offer_processor ();
    began = ticks_now ();
  }
}

/* Returns 0 if the thread is to continue, 1 if it is to run into the trap. */
uint64_t
hs_ask (uint64_t site, const uint64_t * registers, uint64_t flags)
{
  struct hs_local * local = hs_local_or_register ();
  unsigned number;
  if (local == NULL)
    return 1;
  struct hs_asks * asks =
      (struct hs_asks *) ((char *) hs_runtime.control + HS_ASKS_OFFSET);
  if (!asks->listening)
    return 1;
  struct hs_ask * ask = take_place (asks, local, registers[RSP], &number);
  if (ask == NULL)
    return 1;
  ask->site = site;
  ask->flags = flags;
  ask->thread_block = hs_thread_block ();
  for (unsigned n = 0; n != 16; n++)
    ask->registers[n] = registers[n];
  store_vectors (ask->vectors);
  show_stack (ask, local, registers[RSP]);
  __atomic_store_n (&ask->state, HS_ASK_WAITING, __ATOMIC_RELEASE);
  /* The tracer stops listening before its last check: either it then sees this
   * question, or the thread sees that the tracer no longer listens. */
  __atomic_fetch_or (&asks->waiting, 1UL << number, __ATOMIC_SEQ_CST);
  if (!asks->listening && take_back (ask))
    return 1;
  return wait_for_answer (ask);
}
