/* The slow side of tracing inside the target: thread registration, room in
 * rings, records that the thunks do not write themselves.
 *
 * Rules of this file: no malloc, no lock, no libc call except where the
 * function says so; every system call is made directly; bounded time, except
 * waiting for room under `block`, which ends when the recorder dies. Compiled
 * with -mgeneral-regs-only: the vector registers are the program's. A signal
 * may arrive between any two instructions and run all of this again.
 */
#include "runtime.h"
#include "system_call.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#define OF_THREAD 1 /* RUSAGE_THREAD of getrusage(2) */

/* Words of a ucontext_t: its stack's lowest address and length, and rsp. */
#define CONTEXT_STACK 2
#define CONTEXT_STACK_SIZE 4
#define CONTEXT_RSP 20

#ifndef HS_SELF_CONTAINED
__thread struct hs_local hs_local __attribute__ ((tls_model ("initial-exec")));
#else
static struct hs_local locals[HS_RINGS] __attribute__ ((aligned (64)));
struct hs_local hs_nobody; /* stays all zero */
struct hs_local * hs_locals_begin = locals;
struct hs_local * hs_locals_end = locals + HS_RINGS;
uint64_t hs_slot;
/* The places in thunks.S that look for a thread's data. */
extern const struct hs_lookup __start_hs_lookups[], __stop_hs_lookups[];
#endif

/* A page that fork wipes: zero in a child, HS_MAGIC in the target. */
union
{
  volatile uint64_t magic;
  char page[4096];
} hs_alive_page __attribute__ ((aligned (4096)));
extern volatile uint64_t hs_alive __attribute__ ((alias ("hs_alive_page")));

struct hs_runtime hs_runtime;

/* 1, permanently, once a second thread has registered: the thunks then wait
 * for the program's earlier loads before they read the time. */
volatile uint32_t hs_many;
static uint32_t registered;

/* The calling thread's id from its C library's thread block, if that begins
 * with its own address; 0: not available. */
static uint32_t
tid_in_block (uint64_t at)
{
  uint64_t block = hs_thread_block ();
  unsigned own_address = at == HS_BLOCK_TID_GLIBC ? 2 : 0;
  if (block == 0 || ((const volatile uint64_t *) block)[own_address] != block)
    return 0;
  return *(const volatile uint32_t *) (block + at);
}

/* The calling thread's id without a system call; 0: it cannot be determined. */
static uint32_t
tid_without_call (void)
{
  return hs_runtime.tid_at != 0 ? tid_in_block (hs_runtime.tid_at) : 0;
}

#ifndef HS_SELF_CONTAINED
/* The thread's own; all zero at first. */
static struct hs_local *
own_local (void)
{
  return &hs_local;
}
#else
/* Replaces the base of fs for a thread without one: such threads are
 * distinguished by their ids. */
#define NO_THREAD_BLOCK 1

static uint64_t
gs_base (void)
{
  uint64_t found;
  __asm__ volatile ("rdgsbase %0" : "=r" (found));
  return found;
}

/* The calling thread's id; 0: it cannot be determined. */
static uint32_t
tid_if_allowed (void)
{
  uint32_t tid = tid_without_call ();
  if (tid == 0 && !hs_is_sandboxed ())
    tid = (uint32_t) system_call (SYS_gettid, 0, 0, 0, 0);
  return tid;
}

/* The thread's own, or NULL: it has none yet. A thread begins with the base
 * of gs of the one that made it. */
static struct hs_local *
local_at_gs (uint64_t thread)
{
  uint64_t gs = gs_base ();
  struct hs_local * local = (struct hs_local *) gs;
  if (gs - (uint64_t) locals >= sizeof locals)
    return NULL;
  if (thread == 0)
    thread = NO_THREAD_BLOCK;
  else if (local->thread == thread)
    return local;
  if (local->tid != tid_if_allowed ())
    return NULL;
  local->thread = thread; /* the program has just given it one */
  return local;
}

/* The same for a thread whose slot is clear: it is new, or it ends. The C
 * library clears the slot before it calls the key's destructor, and the thread
 * goes on for a while. */
static struct hs_local *
local_of_ending (uint64_t thread)
{
  if (hs_alive != HS_MAGIC)
    return NULL; /* a forked child has no control page */
  for (unsigned word = 0; word != HS_RINGS / 64; word++)
    for (uint64_t bits = hs_runtime.control->taken[word]; bits != 0; bits &= bits - 1)
    {
      struct hs_local * local = &locals[word * 64 + (unsigned) __builtin_ctzll (bits)];
      if (local->thread == thread && local->tid == tid_if_allowed ())
        return local;
    }
  return NULL;
}

static struct hs_local *
own_local (void)
{
  uint64_t thread = hs_thread_block ();
  if (hs_slot == 0)
    return local_at_gs (thread);
  /* A block that glibc uses again may have what an ended thread left there, and a second C library may use the same place. */
  struct hs_local * found = *(struct hs_local * const *) (thread + hs_slot);
  if ((uint64_t) found - (uint64_t) locals < sizeof locals
      && found->tid == tid_in_block (HS_BLOCK_TID_GLIBC))
    return found;
  return local_of_ending (thread);
}
#endif

static uint64_t
ticks_now (void)
{
  uint32_t low, high;
  __asm__ volatile ("lfence; rdtsc" : "=a" (low), "=d" (high) : : "memory");
  return ((uint64_t) high << 32) | low;
}

/* The kernel marks the robust lock that the recorder holds when it dies. */
static int
recorder_is_gone (void)
{
  uint32_t owner = hs_runtime.control->owner;
  return (owner & FUTEX_OWNER_DIED) != 0 || (owner & FUTEX_TID_MASK) == 0;
}

static int
recording_ended (void)
{
  return hs_runtime.control->stop || recorder_is_gone ();
}

int
hs_recording_ended (void)
{
  return recording_ended ();
}

/* Ends the recorder's sleep, if it sleeps and a thread may say so. */
void
hs_wake_recorder (void)
{
  volatile uint32_t * word = &hs_runtime.control->recorder_sleeps;
  uint32_t asleep = HS_RECORDER_SLEEPS;
  if (*word != asleep || hs_in_sandbox)
    return;
  if (__atomic_compare_exchange_n (word, &asleep, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    system_call (SYS_futex, (long) word, FUTEX_WAKE, 1, 0);
}

static void
sleep_us (long us)
{
  struct timespec t = { 0, us * 1000 };
  system_call (SYS_nanosleep, (long) &t, 0, 0, 0);
}

/* This much is written before the slow side checks whether the recorder
 * sleeps. */
#define MUCH_BYTES (HS_RING_BYTES / 4)

/* Sets how far `local` may write. With captures, or if threads wait for copies
 * of memory, the thunks, which do not know about them, always ask the slow
 * side; otherwise only now and then. */
static void
set_limit (struct hs_local * local, uint64_t limit)
{
  local->room = limit;
  int is_slow = hs_captures () || hs_runtime.control->copy_every != 0 || hs_runtime.entries_only;
  uint64_t soon = local->cur + MUCH_BYTES;
  local->limit = is_slow ? 0 : soon < limit ? soon : limit;
}

/* There is room for a record. Wakes a sleeping recorder to drain the ring
 * before it is full. */
static void
look_after_recorder (struct hs_local * local)
{
  uint64_t tail, used;
  if (local->cur >= local->limit)
    set_limit (local, local->room);
  if (hs_runtime.control->recorder_sleeps == 0)
    return;
  tail = local->shared->tail != 0 ? local->shared->tail : local->base;
  used = local->cur >= tail ? local->cur - tail : local->end - tail + local->cur - local->base;
  if (used >= MUCH_BYTES)
    hs_wake_recorder ();
}

static void
turn_off (struct hs_local * local)
{
  local->off = HS_OFF;
  /* A forked child has no control page to read. `cur` stays: a handler may do
   * this in the middle of a write that has found room. */
  local->limit = local->room = 0;
}

/* Sets how far `local` may write. 0: no room for `bytes` now. */
static int
find_room (struct hs_local * local, uint64_t bytes)
{
  struct hs_ring * ring = local->shared;
  uint64_t tail = ring->tail, cur = local->cur;
  if (cur >= tail)
  {
    if (cur + bytes <= local->end - HS_GUARD_BYTES)
    {
      set_limit (local, local->end - HS_GUARD_BYTES - bytes);
      return 1;
    }
    if (local->base + bytes + HS_GUARD_BYTES >= tail)
      return 0;
    /* At once: a handler's records belong to one lap or the other. */
    ring->wrap_at = __atomic_exchange_n (&local->cur, local->base, __ATOMIC_RELAXED);
    cur = local->base;
  }
  if (cur + bytes + HS_GUARD_BYTES >= tail)
    return 0;
  set_limit (local, tail - HS_GUARD_BYTES - bytes);
  return 1;
}

/* Counts a record that found no room. The thread's next one asks the slow
 * side, which reports the gap first. */
static void
count_lost (struct hs_local * local)
{
  __atomic_fetch_add (&local->pending_lost, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add (&local->shared->lost, 1, __ATOMIC_RELAXED);
  set_limit (local, 0);
}

/* Spins before asking for permission to sleep: some passes of the recorder. */
#define SPINS 10000

/* Waits a moment. A sandbox may forbid the thread to sleep, which the
 * recorder finds out. */
static void
wait_for_room (struct hs_ring * ring, unsigned spins)
{
  hs_wake_recorder ();
  if (spins == SPINS)
    ring->waits++;
  if (spins < SPINS || ring->may_sleep != ring->waits)
    __builtin_ia32_pause ();
  else
    sleep_us (spins < SPINS + 1000 ? 50 : 1000);
}

#define RING_WAIT_BYTES 24

/* Waits for room under `block`; counts the loss under `drop`. The caller has
 * set `busy`, so that no handler moves `cur` meanwhile; while this waits,
 * handlers may write and wait for themselves. After a wait there is room for
 * its record, too, and `since` is when it began. 0: the record is lost or the
 * recording has ended. */
static int
make_room (struct hs_local * local, uint64_t bytes, uint64_t * since)
{
  unsigned spins = 0;
  uint64_t busy = local->busy;
  if (find_room (local, bytes))
    return 1;
  *since = ticks_now ();
  while (!find_room (local, bytes + RING_WAIT_BYTES))
  {
    struct hs_ring * ring = local->shared;
    local->busy = 0;
    /* The recorder took the thread for an ended one: it gets another ring with its next call. A handler may have come here before. */
    if (ring == NULL || ring->tid != local->tid)
    {
      local->limit = local->room = 0;
      local->shared = NULL;
      __atomic_fetch_add (&hs_runtime.control->lost_no_ring, 1, __ATOMIC_SEQ_CST);
      return 0;
    }
    if (recording_ended ())
    {
      turn_off (local);
      return 0;
    }
    if (hs_runtime.control->drop_when_full)
    {
      count_lost (local);
      return 0;
    }
    if (spins < UINT32_MAX)
      spins++;
    wait_for_room (ring, spins);
    if (local->shared != ring)
      return 0;
    local->busy = busy;
  }
  return 1;
}

/* The kernel's frame of a signal handler is larger than this. */
#define SIGNAL_FRAME_BYTES 1024

/* Is the write marked by `busy` one that a signal handler jumped out of? If
 * not, the handler's frame lies between it and us, or it runs on the alternate
 * stack. */
static int
was_abandoned (const struct hs_local * local, uint64_t busy)
{
  uint64_t here = (uint64_t) __builtin_frame_address (0);
  int busy_on_main = busy >= local->stack_low && busy < local->stack_high;
  int here_on_main = here >= local->stack_low && here < local->stack_high;
  /* Asks no one: signals may arrive faster than answers. */
  if ((!busy_on_main || !here_on_main) && !hs_in_sandbox)
  {
    stack_t other = { .ss_flags = SS_DISABLE };
    system_call (SYS_sigaltstack, 0, (long) &other, 0, 0);
    uint64_t bytes = other.ss_flags & SS_DISABLE ? 0 : other.ss_size;
    int busy_on_other = busy - (uint64_t) other.ss_sp < bytes;
    int here_on_other = here - (uint64_t) other.ss_sp < bytes;
    if (busy_on_other != here_on_other)
      return busy_on_other; /* a handler leaves its stack only for good */
  }
  return here + SIGNAL_FRAME_BYTES > busy;
}

/* Removes the record that was being written when a handler jumped away.
 * Records of handlers follow it and move down, so that the bytes up to `cur`
 * are whole records again. The caller has set `busy`. */
static void
settle (struct hs_local * local)
{
  uint64_t head = local->shared->head ? local->shared->head : local->base;
  uint64_t cur = local->cur;
  uint64_t to = head <= cur ? head : local->base; /* or a lap has ended since */
  uint64_t from = cur;
  if (local->nested_at == head && local->nested_from >= to && local->nested_from <= cur)
    from = local->nested_from;
  if (local->nested_busy || local->nested_deep)
  {
    /* Their number is unknown. There is room: the slow side need not be asked
     * soon. */
    from = cur;
    __atomic_fetch_add (&local->pending_lost, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add (&local->shared->lost, 1, __ATOMIC_RELAXED);
  }
  local->nested_at = 0;
  local->nested_busy = local->nested_deep = 0;
  for (;;)
  {
    for (; from < cur; from += 8, to += 8)
      *(uint64_t *) to = *(const uint64_t *) from;
    /* Not if yet another handler has written after it. */
    if (__atomic_compare_exchange_n (&local->cur, &cur, to, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      return;
  }
}

/* Notes that a handler writes after a record that it interrupted. */
static void
begin_nested (struct hs_local * local)
{
  uint64_t head = local->shared->head ? local->shared->head : local->base;
  if (local->nested_at != head)
  {
    local->nested_from = local->cur;
    local->nested_deep = local->nested_busy = 0;
    local->nested_at = head;
  }
  local->nested_deep |= local->nested_busy;
  local->nested_busy = 1;
}

#define OUTPUT_CHUNK 4096
#define GAP_BYTES 24

/* One record being written. `inside`: a signal handler interrupted another
 * write of this thread, which will make both visible. */
struct writing
{
  struct hs_local * local;
  uint64_t * words;
  int inside;
};

/* Asks for room, which must not start a new lap in a handler. `since`: when a
 * wait for it began, if there was one. */
static int
has_room (struct writing * w, uint64_t bytes, uint64_t * since)
{
  struct hs_local * local = w->local;
  if (w->inside)
  {
    /* Only the interrupted write may move to another lap; the room after its
     * limit must suffice. */
    if (local->cur + bytes <= local->room + HS_GUARD_BYTES - OUTPUT_CHUNK)
      return 1;
    count_lost (local);
    return 0;
  }
  int abandoned = local->busy != 0;
  local->busy = (uint64_t) __builtin_frame_address (0);
  if (abandoned)
    settle (local);
  if (local->cur + bytes <= local->room)
  {
    look_after_recorder (local);
    return 1;
  }
  if (make_room (local, bytes, since))
    return 1;
  local->busy = 0;
  return 0;
}

/* Lost records are reported right before the first record that fits together
 * with the report, and a wait for room before the record that waited. */
static int
begin (struct writing * w, struct hs_local * local, uint64_t bytes)
{
  uint64_t busy = local->busy, lost = 0, since = 0;
  w->local = local;
  w->inside = busy != 0 && !was_abandoned (local, busy);
  if (w->inside)
    begin_nested (local);
  if (local->pending_lost != 0)
    lost = __atomic_exchange_n (&local->pending_lost, 0, __ATOMIC_RELAXED);
  if (lost != 0)
    bytes += GAP_BYTES;
  if (!has_room (w, bytes, &since))
  {
    __atomic_fetch_add (&local->pending_lost, lost, __ATOMIC_RELAXED);
    if (w->inside)
      local->nested_busy = 0;
    return 0;
  }
  if (since != 0)
    bytes += RING_WAIT_BYTES;
  w->words = (uint64_t *) bytes;
  __asm__ volatile ("xaddq %0, %1"
                    : "+r" (w->words), "+m" (local->cur)
                    :
                    : "memory");
  if (lost != 0)
  {
    __atomic_fetch_add (&local->shared->told, lost, __ATOMIC_RELAXED);
    w->words[1] = HS_GAP | HS_GAP_FULL << 8;
    w->words[2] = lost;
    w->words[0] = ticks_now ();
    w->words += GAP_BYTES / 8;
  }
  if (since != 0)
  {
    w->words[1] = HS_SYSCALL | HS_RING_WAIT << 4;
    w->words[2] = since;
    w->words[0] = ticks_now ();
    w->words += RING_WAIT_BYTES / 8;
  }
  return 1;
}

/* A record was written. If the number allowed between two copies of memory is
 * reached, waits for the copy, as for room under `block`. */
static void
count_for_copy (struct hs_local * local)
{
  struct hs_control * control = hs_runtime.control;
  uint64_t every = control->copy_every, count;
  if (every == 0)
    return;
  count = __atomic_add_fetch (&control->copy_records, 1, __ATOMIC_SEQ_CST);
  for (unsigned spins = 1; (int64_t) (count - control->copied_records) >= (int64_t) every;)
  {
    if (recording_ended () || control->drop_when_full || control->copies_pass)
      return;
    wait_for_room (local->shared, spins);
    spins += spins < UINT32_MAX;
  }
}

static void
end (struct writing * w)
{
  struct hs_local * local = w->local;
  uint64_t cur;
  if (w->inside)
  {
    local->nested_busy = 0;
    return;
  }
  do
  {
    local->busy = (uint64_t) w;
    cur = local->cur;
    local->shared->head = cur;
    local->busy = 0;
  }
  while (local->cur != cur);
  count_for_copy (local);
}

/* A record of word 1 alone. */
static void
write_small (struct hs_local * local, uint64_t word1)
{
  struct writing w;
  if (!begin (&w, local, 16))
    return;
  w.words[1] = word1;
  w.words[0] = ticks_now ();
  end (&w);
}

static int
take_ring (void)
{
  struct hs_control * control = hs_runtime.control;
  for (int word = 0; word != HS_RINGS / 64; word++)
  {
    uint64_t taken = control->taken[word];
    while (~taken != 0)
    {
      int bit = __builtin_ctzll (~taken);
      uint64_t wanted = taken | 1UL << bit;
      if (__atomic_compare_exchange_n (&control->taken[word], &taken, wanted, 0,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return word * 64 + bit;
    }
  }
  return -1;
}

static void
find_stack (struct hs_local * local, uint64_t here)
{
  uint64_t thread_block = hs_thread_block ();
  uint64_t high = local->tid == hs_runtime.control->main_tid
                      ? hs_runtime.control->main_stack_high
                      : thread_block; /* glibc: at the top of the stack */
  uint64_t low = high - hs_runtime.control->stack_bytes;
  if (here < high && here >= low)
  {
    local->stack_low = low;
    local->stack_high = high;
  }
  else
    local->stack_low = local->stack_high = 0;
  local->block_low = local->hole = 0;
}

/* The first record of a tenancy. If the name is not queried, the recorder
 * fills it in, if the thread still exists then. */
static void
write_thread (struct hs_local * local, int asks_name)
{
  struct writing w;
  if (!begin (&w, local, 48))
    return;
  w.words[0] = hs_runtime.latest = ticks_now ();
  w.words[1] = HS_THREAD | (uint64_t) local->tid << 8;
  w.words[2] = local->stack_low;
  w.words[3] = local->stack_high;
  w.words[4] = w.words[5] = 0;
  if (asks_name)
    system_call (SYS_prctl, 16 /* PR_GET_NAME */, (long) &w.words[4], 0, 0);
  end (&w);
}

/* The calling thread's id, if system calls are allowed. */
static uint32_t
own_tid (void)
{
  uint32_t tid = (uint32_t) system_call (SYS_gettid, 0, 0, 0, 0);
  /* musl's block ends before the other word. */
  if (hs_runtime.tid_at == 0 && tid_in_block (HS_BLOCK_TID_MUSL) == tid)
    hs_runtime.tid_at = HS_BLOCK_TID_MUSL;
  else if (hs_runtime.tid_at == 0 && tid_in_block (HS_BLOCK_TID_GLIBC) == tid)
    hs_runtime.tid_at = HS_BLOCK_TID_GLIBC;
  return tid;
}

/* When a thread last waited for a ring in vain; 0: none has. */
static uint64_t gave_up_at;
/* About a second. */
#define PATIENCE_TICKS 2500000000

/* Waits a little for a ring if all are taken; -1: there is none. */
static int
wait_for_ring (int may_call)
{
  int index = take_ring ();
  /* Once a thread has waited in vain, others do not for a while: each call would wait again. */
  const uint64_t given_up = __atomic_load_n (&gave_up_at, __ATOMIC_RELAXED);
  if (index < 0 && given_up != 0 && ticks_now () - given_up < PATIENCE_TICKS)
    may_call = 0;
  for (int tries = 0; index < 0 && tries < 200; tries++)
  {
    if (recording_ended () || hs_runtime.control->drop_when_full || !may_call)
      break;
    hs_wake_recorder ();
    sleep_us (1000);
    index = take_ring ();
  }
  if (index < 0)
  {
    __atomic_fetch_add (&hs_runtime.control->lost_no_ring, 1, __ATOMIC_SEQ_CST);
    if (may_call)
      __atomic_store_n (&gave_up_at, ticks_now (), __ATOMIC_RELAXED);
  }
  return index;
}

static uint64_t
nanoseconds (const struct timespec * time)
{
  return (uint64_t) time->tv_sec * 1000000000 + (uint64_t) time->tv_nsec;
}

/* Notes how long the calling thread has run. The kernel forgets that, and how
 * long the thread has waited for a processor, as soon as the thread is gone. */
static void
note_times (volatile struct hs_times * times)
{
  struct timespec now = { 0, 0 }, ran = { 0, 0 };
  struct rusage used;
  if (hs_in_sandbox || hs_runtime.control->sandbox != HS_SANDBOX_SEEN
      || system_call (SYS_clock_gettime, CLOCK_MONOTONIC, (long) &now, 0, 0) != 0
      || system_call (SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long) &ran, 0, 0) != 0
      || system_call (SYS_getrusage, OF_THREAD, (long) &used, 0, 0) != 0)
    return;
  times->ran_ns = nanoseconds (&ran);
  times->sleeps = (uint64_t) used.ru_nvcsw;
  times->clock_ns = nanoseconds (&now);
}

/* Gives the ring to the calling thread, whose id is known. `local` is off
 * because of handlers that run meanwhile. */
static void
move_in (struct hs_local * local, int index, uint64_t here, int may_call)
{
  struct hs_ring * ring = &hs_runtime.rings[index];
  local->base = hs_runtime.data + (uint64_t) index * HS_RING_BYTES;
  local->end = local->base + HS_RING_BYTES - HS_FRAMES_BYTES;
  local->cur = local->base;
  ((struct hs_frames *) local->end)->count = 0;
  local->pending_lost = 0;
  find_stack (local, here);
  ring->tid = local->tid;
  ring->exiting = 0;
  local->shared = ring;
  hs_note_reserved ();
  if (__atomic_fetch_add (&registered, 1, __ATOMIC_SEQ_CST) != 0)
    hs_many = 1;
  if (may_call)
  {
    hs_catch_signals ();
    hs_give_signal_stack ((unsigned) index);
    note_times (&ring->began);
  }
  write_thread (local, may_call);
  local->off = 0;
}

/* What is known about a thread that has no ring yet. */
struct newcomer
{
  uint32_t tid;  /* 0: unknown */
  int may_call;  /* the runtime may make system calls */
  int has_time;  /* the thread may read the time stamp counter; -1: unknown */
};

/* Threads whose id is known do not wait for the recorder's answer: if a
 * sandbox may be entered unseen, they make none of the runtime's system calls. */
static struct newcomer
look_at_newcomer (void)
{
  const struct hs_control * control = hs_runtime.control;
  struct newcomer found = { 0, 0, 1 };
  if (hs_in_sandbox || control->sandbox != HS_SANDBOX_SEEN)
    found.tid = tid_without_call ();
  if (found.tid == 0 || hs_runtime.time_was_forbidden)
    found.may_call = !hs_is_sandboxed ();
  if (found.tid == 0 && found.may_call)
    found.tid = own_tid ();
  if (control->sandbox == HS_SANDBOX_STRICT)
    found.has_time = -1;
  else if (hs_runtime.time_was_forbidden)
    found.has_time = found.may_call ? !hs_time_is_forbidden () : -1;
  return found;
}

#ifndef HS_SELF_CONTAINED
/* Gives the calling thread a ring. Calls pthread_setspecific, which for the
 * first 32 keys stores one word in the thread's own block. */
static struct hs_local *
register_thread (uint64_t here)
{
  struct hs_local * local = &hs_local;
  local->off = HS_OFF;
  struct newcomer newcomer = look_at_newcomer ();
  if (newcomer.has_time == 0)
  {
    local->off = HS_OFF_NO_TIME;
    return NULL;
  }
  local->tid = newcomer.tid;
  if (newcomer.has_time < 0 || newcomer.tid == 0)
  {
    __atomic_fetch_add (&hs_runtime.control->lost_no_ring, 1, __ATOMIC_SEQ_CST);
    return NULL;
  }
  int index = wait_for_ring (newcomer.may_call);
  if (index < 0)
  {
    local->off = recording_ended () ? HS_OFF : 0;
    return NULL;
  }
  move_in (local, index, here, newcomer.may_call);
  if (hs_runtime.set_specific != NULL)
    hs_runtime.set_specific (hs_runtime.key, local);
  return local;
}
#else
/* Lets the calling thread find its place again. For an early key,
 * pthread_setspecific stores one word in the thread's own block. */
static void
remember (struct hs_local * local)
{
  if (hs_slot != 0)
    hs_runtime.set_specific (hs_runtime.key, local);
  else
    __asm__ volatile ("wrgsbase %0" : : "r" (local) : "memory");
}

/* Gives the calling thread a ring. A program that uses gs itself keeps it. A
 * thread whose block is not glibc's, or another thread's, has no slot there.
 * Whether a thread may record is checked again with each call: before it has a
 * ring there is no place to note it. */
static struct hs_local *
register_thread (uint64_t here)
{
  uint64_t gs = hs_slot == 0 ? gs_base () : 0, thread = hs_thread_block ();
  struct newcomer newcomer = look_at_newcomer ();
  if (newcomer.has_time == 0)
    return NULL;
  if (newcomer.has_time < 0 || newcomer.tid == 0
      || (hs_slot != 0 && tid_in_block (HS_BLOCK_TID_GLIBC) != newcomer.tid)
      || (gs != 0 && gs - (uint64_t) locals >= sizeof locals))
  {
    __atomic_fetch_add (&hs_runtime.control->lost_no_ring, 1, __ATOMIC_SEQ_CST);
    return NULL;
  }
  int index = wait_for_ring (newcomer.may_call);
  if (index < 0)
    return NULL;
  struct hs_local * local = &locals[index];
  local->off = HS_OFF;
  local->shared = NULL;
  local->limit = local->room = 0;
  local->busy = 0;
  local->vfork = 0;
  local->is_spawning = 0;
  local->nested_at = 0;
  local->nested_busy = local->nested_deep = 0;
  local->tid = newcomer.tid;
  local->signal_stack = 0;
  local->thread = thread != 0 ? thread : NO_THREAD_BLOCK;
  local->stack = hs_runtime.stacks + (uint64_t) (index + 1) * HS_GO_STACK_BYTES;
  remember (local);
  move_in (local, index, here, newcomer.may_call);
  return local;
}
#endif

/* The thread's place to write to, or NULL if it records nothing. */
static struct hs_local *
local_or_register (uint64_t here)
{
  struct hs_local * local = own_local ();
  if (local != NULL && (local->off || local->vfork))
    return NULL;
  if (hs_alive != HS_MAGIC)
  {
    if (local != NULL)
      turn_off (local); /* a forked child */
    return NULL;
  }
  if (local == NULL || local->shared == NULL)
  {
    if (!recording_ended ())
      local = register_thread (here);
    else if (local != NULL)
      turn_off (local);
    if (local == NULL || local->off || local->shared == NULL)
      return NULL;
  }
  return local;
}

/* The same, for other files. */
struct hs_local *
hs_local_or_register (void)
{
  return local_or_register ((uint64_t) __builtin_frame_address (0));
}

/* The thread's place if it has one, for other files. */
struct hs_local *
hs_own_local (void)
{
  return own_local ();
}

/* The calling thread must no longer read the time stamp counter: it records
 * nothing until it may. `is_so`: it cannot be read now; readers replace an
 * earlier time by the thread's latest one. */
void
hs_forbid_time (int is_so)
{
  struct hs_local * local =
      local_or_register ((uint64_t) __builtin_frame_address (0));
  struct writing w;
  hs_runtime.time_was_forbidden = 1;
  if (local == NULL)
    return;
  __atomic_fetch_add (&hs_runtime.control->forbidden, 1, __ATOMIC_SEQ_CST);
  if (begin (&w, local, GAP_BYTES))
  {
    w.words[1] = HS_GAP | HS_GAP_FORBIDDEN << 8;
    w.words[2] = 0;
    w.words[0] = is_so ? hs_runtime.latest : ticks_now ();
    end (&w);
  }
  local->off = HS_OFF_NO_TIME;
  local->limit = local->room = 0;
}

void
hs_allow_time (void)
{
  struct hs_local * local = own_local ();
  if (hs_alive == HS_MAGIC && local != NULL && local->off == HS_OFF_NO_TIME)
    local->off = 0;
}

/* Does a child of vfork run in the calling thread's place? */
int
hs_is_in_vfork (void)
{
  struct hs_local * local = own_local ();
  return local != NULL && local->vfork;
}

static void
note_end (struct hs_local * local)
{
  if (local->shared->began.clock_ns != 0)
    note_times (&local->shared->ended);
}

/* The calling thread ends the program: its destructors do not run. */
void
hs_note_end (void)
{
  struct hs_local * local = own_local ();
  if (local != NULL && !local->off && !local->vfork && local->shared != NULL)
    note_end (local);
}

/* Runs when a thread ends, among its destructors. Others may still call
 * traced functions, so the ring stays the thread's until it is gone. */
static void
thread_exits (void * value)
{
  struct hs_local * local = value;
  if (local != local_or_register (0))
    return;
  write_small (local, HS_THREAD_EXIT | (uint64_t) local->tid << 8);
  note_end (local);
  local->shared->exiting = 1;
}

/* Where the shadow of stack slots is mapped. */
static int
has_shadow (uint64_t slot)
{
  if (hs_runtime.entries_only)
    return 0;
  if (slot >> 45 == 3)
    return 1;
  if (slot >> 32 == 0)
    return !(hs_runtime.missing_shadows & 4);
  return slot >= 0x550000000000 && slot < 0x570000000000
      && !(hs_runtime.missing_shadows & 2);
}

#define STORE_XMM(n) \
  __asm__ volatile ("movq %%xmm" #n ", %0" : "=m" (words[n]))

static void
store_xmm (uint64_t * words, unsigned count)
{
  if (count >= 2)
  {
    STORE_XMM (0);
    STORE_XMM (1);
  }
  if (count >= 4)
  {
    STORE_XMM (2);
    STORE_XMM (3);
  }
  if (count >= 8)
  {
    STORE_XMM (4);
    STORE_XMM (5);
    STORE_XMM (6);
    STORE_XMM (7);
  }
}

/* Writes the record of one enter that the thunk could not write. Returns where
 * the thunk continues; HS_HOOK: after hooking the return. */
uint64_t
hs_enter_slow (struct hs_saved * saved, const struct hs_probe * probe)
{
  uint64_t slot = (uint64_t) &saved->return_address;
  struct hs_local * local = local_or_register (slot);
  struct hs_capture capture;
  struct writing w;
  if (local == NULL)
    return probe->trampoline;
  capture.bytes = 0;
  if (hs_captures () || hs_keeps_texts (probe))
    hs_capture_enter (&capture, local, saved, probe);
  if (!begin (&w, local, probe->bytes + capture.bytes))
    return probe->trampoline;

  uint64_t ret = saved->return_address;
  int hooked = ret == (uint64_t) hs_leave || ret == (uint64_t) hs_leave_xmm;
  int can_hook = !hooked && has_shadow (slot);
  uint64_t kind = hooked ? HS_ENTER_TAIL : can_hook ? HS_ENTER : HS_ENTER_NOLEAVE;
  w.words[1] = slot << 17 | (probe->word1 & ~0xfUL) | kind;
  w.words[2] = probe->word2 | ret;
  w.words[3] = saved->rdi;
  w.words[4] = saved->rsi;
  w.words[5] = saved->rdx;
  w.words[6] = saved->rcx;
  w.words[7] = saved->r8;
  w.words[8] = saved->r9;
  store_xmm (w.words + 9, probe->word1 >> 4 & 0xf);
  if (can_hook)
    *(uint64_t *) (slot ^ 1UL << HS_SHADOW_BIT) = ret;
  w.words[0] = ticks_now ();
  if (capture.bytes != 0)
    hs_capture_write (&capture, w.words + probe->bytes / 8, w.words[0]);
  end (&w);
  if (!can_hook)
    return probe->trampoline;
  return probe->trampoline | HS_HOOK | (probe->xmm ? HS_HOOK_XMM : 0);
}

#ifdef HS_SELF_CONTAINED
/* The same for a call of Go code, of which only the entry is recorded. */
void
hs_enter_go_slow (const struct hs_saved_go * saved)
{
  const struct hs_probe * probe = saved->probe;
  struct hs_local * local = local_or_register ((uint64_t) saved->sp);
  struct writing w;
  if (local == NULL || !begin (&w, local, HS_ENTER_BYTES))
    return;
  w.words[1] = (uint64_t) saved->sp << 17 | probe->word1;
  w.words[2] = probe->word2 | *saved->sp;
  w.words[3] = saved->rdi;
  w.words[4] = saved->rsi;
  w.words[5] = saved->rdx;
  w.words[6] = saved->rcx;
  w.words[7] = saved->r8;
  w.words[8] = saved->r9;
  w.words[0] = ticks_now ();
  end (&w);
}
#endif

/* Virtual machines that read return addresses from the stack (V8) ask where the
 * one is that belongs at `location`: that of a hooked call is in the shadow. */
uint64_t
hs_return_address_at (uint64_t location)
{
  uint64_t found = *(const uint64_t *) location;
  int is_hooked = found == (uint64_t) hs_leave || found == (uint64_t) hs_leave_xmm;
  return is_hooked ? location ^ 1UL << HS_SHADOW_BIT : location;
}

void
hs_leave_slow (const struct hs_saved_leave * saved, uint64_t with_xmm)
{
  uint64_t slot = (uint64_t) &saved->slot;
  uint64_t bytes = HS_LEAVE_BYTES + (with_xmm ? 16 : 0);
  struct hs_local * local = local_or_register (slot);
  struct hs_capture capture;
  struct writing w;
  if (local == NULL)
    return;
  capture.bytes = 0;
  if (hs_captures ())
    hs_capture_leave (&capture, local, saved);
  if (!begin (&w, local, bytes + capture.bytes))
    return;
  w.words[1] = slot << 17 | HS_LEAVE | (with_xmm ? 0x20 : 0);
  w.words[2] = saved->rax;
  w.words[3] = saved->rdx;
  if (with_xmm)
    store_xmm (w.words + 4, 2);
  w.words[0] = ticks_now ();
  if (capture.bytes != 0)
    hs_capture_write (&capture, w.words + bytes / 8, w.words[0]);
  end (&w);
}

/* For the replaced fork and exec: does this thread record, and is it really
 * the thread (not a child of vfork or posix_spawn that borrows its memory)? */
static struct hs_local *
local_of_this_thread (void)
{
  struct hs_local * local =
      local_or_register ((uint64_t) __builtin_frame_address (0));
  /* In a sandbox this cannot be determined. */
  if (local == NULL || hs_is_sandboxed ()
      || local->tid != (uint32_t) system_call (SYS_gettid, 0, 0, 0, 0))
    return NULL;
  return local;
}

/* One piece of output: fd (low byte) and length, then the bytes. */
static void
write_bytes (struct hs_local * local, uint64_t kind, uint64_t low,
             const char * bytes, uint64_t length)
{
  struct writing w;
  uint64_t padded = (length + 7) & ~7UL;
  if (!begin (&w, local, 16 + padded))
    return;
  w.words[0] = ticks_now ();
  w.words[1] = kind | low << 8 | length << 16;
  if (padded != 0)
    w.words[1 + padded / 8] = 0;
  char * to = (char *) (w.words + 2);
  __asm__ volatile ("rep movsb"
                    : "+D" (to), "+S" (bytes), "+c" (length)
                    :
                    : "memory");
  end (&w);
}

/* Makes no system call: a sandbox may allow only `write`. */
void
hs_record_output (int fd, const char * bytes, uint64_t length)
{
  struct hs_local * local =
      local_or_register ((uint64_t) __builtin_frame_address (0));
  /* The kernel reads nothing that is written to /dev/null. */
  if (local != NULL)
    length = hs_readable (bytes, length);
  while (local != NULL && length != 0)
  {
    uint64_t chunk = length < OUTPUT_CHUNK ? length : OUTPUT_CHUNK;
    write_bytes (local, HS_OUTPUT, (uint64_t) fd, bytes, chunk);
    bytes += chunk;
    length -= chunk;
  }
}

void
hs_record_fork (int child)
{
  struct hs_local * local = local_of_this_thread ();
  if (local != NULL)
    write_small (local, HS_FORK | (uint64_t) child << 8);
}

/* By the C library's `clone`, through which its `posix_spawn` goes where the kernel has no clone3. */
__attribute__ ((used)) void
hs_record_clone (int child)
{
  struct hs_local * local = local_of_this_thread ();
  if (local != NULL && !local->is_spawning)
    write_small (local, HS_FORK | (uint64_t) child << 8);
}

/* Returns what hs_end_spawn takes. */
struct hs_local *
hs_begin_spawn (void)
{
  struct hs_local * local = local_of_this_thread ();
  if (local != NULL)
    local->is_spawning = 1;
  return local;
}

/* `child`: 0 if there is none. */
void
hs_end_spawn (struct hs_local * local, int child)
{
  if (local == NULL)
    return;
  local->is_spawning = 0;
  if (child != 0)
    write_small (local, HS_FORK | (uint64_t) child << 8);
}

void
hs_record_exec (const char * path)
{
  struct hs_local * local = local_of_this_thread ();
  uint64_t length = 0, most;
  if (local == NULL || path == NULL)
    return;
  most = hs_readable (path, 4000);
  while (length < most && path[length] != 0)
    length++;
  write_bytes (local, HS_EXEC, 0, path, length);
}

/* The calling thread has not become another program, and errno says why. */
void
hs_record_exec_failed (void)
{
  struct hs_local * local = local_of_this_thread ();
  const int * error = hs_errno_location ();
  uint64_t code = HS_EXEC_UNKNOWN_ERROR;
  if (local == NULL)
    return;
  if (error != NULL && *error > 0 && *error < HS_EXEC_UNKNOWN_ERROR)
    code = (uint64_t) *error;
  write_bytes (local, HS_EXEC, code, NULL, 0);
}

/* The calling thread has another name: at most 15 characters of it count. */
void
hs_record_name (const char * name)
{
  struct hs_local * local = local_of_this_thread ();
  struct writing w;
  uint64_t words[2] = { 0, 0 };
  uint64_t most;
  if (local == NULL)
    return;
  most = hs_readable (name, 15);
  for (unsigned n = 0; n != most && name[n] != 0; n++)
    ((char *) words)[n] = name[n];
  if (!begin (&w, local, 32))
    return;
  w.words[1] = HS_THREAD_NAME | (uint64_t) local->tid << 8;
  w.words[2] = words[0];
  w.words[3] = words[1];
  w.words[0] = ticks_now ();
  end (&w);
}

/* A record of word 1 and more words. */
void
hs_record_words (uint64_t word1, const volatile uint64_t * words,
                 uint64_t count)
{
  struct hs_local * local =
      local_or_register ((uint64_t) __builtin_frame_address (0));
  struct writing w;
  if (local == NULL || !begin (&w, local, 16 + 8 * count))
    return;
  w.words[1] = word1;
  for (uint64_t n = 0; n != count; n++)
    w.words[2 + n] = words[n];
  w.words[0] = ticks_now ();
  end (&w);
}

/* The end of the thread's signal stack, if the thread is on it and leaves it for
 * `stack`; or 0. */
static uint64_t
end_of_left_signal_stack (const struct hs_local * local, uint64_t stack)
{
  uint64_t here = (uint64_t) __builtin_frame_address (0);
  stack_t other = { .ss_flags = SS_DISABLE };
  if ((here >= local->stack_low && here < local->stack_high) || hs_in_sandbox
      || system_call (SYS_sigaltstack, 0, (long) &other, 0, 0) != 0
      || (other.ss_flags & SS_DISABLE))
    return 0;
  uint64_t low = (uint64_t) other.ss_sp;
  int is_left = here - low < other.ss_size && stack - low >= other.ss_size;
  return is_left ? low + other.ss_size : 0;
}

/* The unwinder or longjmp resumes the program at this stack pointer. Calls of a
 * handler that it leaves do not go on, other than those of a coroutine. */
__attribute__ ((used)) void
hs_frames_left (uint64_t stack)
{
  if (hs_alive != HS_MAGIC)
    return;
  const struct hs_local * local = hs_own_local ();
  if (local == NULL || local->off || local->vfork || local->shared == NULL)
    return;
  uint64_t end = end_of_left_signal_stack (local, stack);
  if (end != 0)
    hs_record_words (HS_SYSCALL | HS_FRAMES_LEFT << 4, &end, 1);
  hs_record_words (HS_SYSCALL | HS_FRAMES_LEFT << 4, &stack, 1);
}

/* The thread leaves the stack with this stack pointer for that of a ucontext_t,
 * whose words the C library is about to read, too. For makecontext the program
 * sets the bounds of its stack. They may be anything in a context that getcontext
 * filled: they count if its stack pointer is within them. */
__attribute__ ((used)) void
hs_stack_switch (uint64_t stack, const uint64_t * to)
{
  if (hs_alive != HS_MAGIC)
    return;
  const struct hs_local * local = hs_own_local ();
  if (local == NULL || local->off || local->vfork || local->shared == NULL)
    return;
  uint64_t low = to[CONTEXT_STACK], size = to[CONTEXT_STACK_SIZE];
  uint64_t rsp = to[CONTEXT_RSP];
  int is_known = low != 0 && rsp > low && rsp - low <= size && size <= UINT64_MAX - low;
  const uint64_t words[3] = { stack, is_known ? low : 0, is_known ? low + size : 0 };
  hs_record_words (HS_SYSCALL | HS_STACK_SWITCH << 4, words, 3);
}

/* Another task is about to record into this thread's ring, too: both may
 * overwrite what the other one writes. */
__attribute__ ((used)) void
hs_ring_is_shared (void)
{
  if (hs_alive != HS_MAGIC)
    return;
  const struct hs_local * local = hs_own_local ();
  if (local == NULL || local->off || local->vfork || local->shared == NULL)
    return;
  const uint64_t lost = 0;
  hs_record_words (HS_GAP | HS_GAP_SHARED << 8, &lost, 1);
}

/* A record of words, and then pieces of memory, each with address and length.
 * An unreadable piece has address 0. */
void
hs_record_pieces (struct hs_local * local, uint64_t kind, const uint64_t * words, uint64_t count,
                  const struct hs_piece * pieces, unsigned piece_count)
{
  struct writing w;
  uint64_t bytes = 8 * count;
  for (unsigned n = 0; n != piece_count; n++)
    bytes += 16 + ((pieces[n].bytes + 7) & ~7UL);
  if (!begin (&w, local, 16 + bytes))
    return;
  w.words[1] = kind | bytes << 16;
  uint64_t * at = w.words + 2;
  for (uint64_t n = 0; n != count; n++)
    *at++ = words[n];
  for (unsigned n = 0; n != piece_count; n++)
  {
    uint64_t length = pieces[n].bytes, padded = (length + 7) & ~7UL;
    const void * from = pieces[n].from;
    void * to = at + 2;
    at[0] = pieces[n].address;
    at[1] = length;
    at[1 + padded / 8] = padded != 0 ? 0 : length;
    at += 2 + padded / 8;
    if (from == NULL)
    {
      if (hs_read_memory (local->tid, to, pieces[n].address, length) != length)
        ((uint64_t *) to)[-2] = 0;
      continue;
    }
    __asm__ volatile ("rep movsb" : "+D" (to), "+S" (from), "+c" (length) : : "memory");
  }
  w.words[0] = ticks_now ();
  end (&w);
}

/* Maps memory for stubs on the recorder's behalf. */
static void
map_for_recorder (struct hs_control * control)
{
  uint32_t asked = control->map_asked;
  if (asked == control->map_answered)
    return;
  if (hs_in_sandbox)
  {
    control->map_result = 0;
    control->map_answered = asked;
    return;
  }
  long flags = 0x100022; /* PRIVATE, ANONYMOUS, FIXED_NOREPLACE */
  long result = system_call6 (SYS_mmap, (long) control->map_address, (long) control->map_bytes,
                              5 /* READ, EXEC */, flags, -1, 0);
  control->map_result = (uint64_t) result;
  control->map_answered = asked;
}

static void
wait_for_answer (struct hs_control * control, uint32_t seen)
{
  struct timespec t = { 0, 1000000 };
  if (hs_in_sandbox)
    __builtin_ia32_pause ();
  else
    system_call (SYS_futex, (long) &control->modules_answered, FUTEX_WAIT, seen, (long) &t);
}

/* The calling thread's id; 0: unknown. */
static uint32_t
waiting_tid (void)
{
  const struct hs_local * local = own_local ();
  if (local != NULL && local->tid != 0)
    return local->tid;
  return hs_in_sandbox ? 0 : own_tid ();
}

/* The dynamic linker's list of modules has changed, and no constructor of a
 * new one has run yet: lets the recorder check and arm them. */
void
hs_modules_changed (void)
{
  struct hs_control * control = hs_runtime.control;
  if (hs_alive != HS_MAGIC || hs_is_in_vfork () || recording_ended ())
    return;
  hs_is_sandboxed ();
  /* The dynamic linker's lock lets in one thread at a time. */
  control->modules_tid = waiting_tid ();
  control->modules_since = hs_runtime.time_was_forbidden ? 0 : ticks_now ();
  uint32_t asked =
      __atomic_add_fetch (&control->modules_asked, 1, __ATOMIC_SEQ_CST);
  for (;;)
  {
    uint32_t answered = control->modules_answered;
    if ((int32_t) (answered - asked) >= 0 || recording_ended ())
      break;
    map_for_recorder (control);
    hs_wake_recorder ();
    wait_for_answer (control, answered);
  }
  /* The thunks need not wait, and the recorder has noted the time of what it
   * saw. */
  __asm__ volatile ("lfence" : : : "memory");
}

/* Returns 0, or the number of the check that failed. */
HS_EXPORTED int
hs_init (const struct hs_start * start)
{
  hs_runtime.control = (struct hs_control *) start->shared;
  if (hs_runtime.control->magic != HS_MAGIC)
    return 1;
  if (start->key >= HS_EARLY_KEYS && start->set_specific != 0)
    return 2;
  hs_runtime.rings = (struct hs_ring *) (start->shared + 4096);
  hs_runtime.data = start->shared + HS_DATA_OFFSET;
  hs_runtime.key = (uint32_t) start->key;
  hs_runtime.set_specific =
      (int (*) (uint32_t, const void *)) start->set_specific;
  hs_runtime.own_base = start->own_base;
  hs_runtime.own_size = start->own_size;
  hs_runtime.missing_shadows = start->missing_shadows;
#ifdef HS_SELF_CONTAINED
  hs_runtime.entries_only = start->entries_only;
  hs_runtime.stacks = start->stacks;
#endif
  if (system_call (SYS_madvise, (long) &hs_alive_page, 4096, 18 /* MADV_WIPEONFORK */, 0) != 0)
    return 3;
  if (hs_time_is_forbidden ())
    return 4;
  hs_alive = HS_MAGIC;
  return 0;
}

HS_EXPORTED struct hs_exports hs_exports;

#ifndef HS_SELF_CONTAINED
__attribute__ ((constructor))
#endif
void
hs_fill_exports (void)
{
  hs_exports.version = 2;
  hs_exports.enter = (void *) hs_enter;
  hs_exports.enter_xmm = (void *) hs_enter_xmm;
  hs_exports.enter_texts = (void *) hs_enter_texts;
  hs_exports.thread_exits = (void *) thread_exits;
  hs_exports.replacements = hs_replacements;
  hs_exports.replacement_count = hs_replacement_count;
#ifdef HS_SELF_CONTAINED
  hs_exports.enter_go = (void *) hs_enter_go;
  hs_exports.lookups = __start_hs_lookups;
  hs_exports.lookups_end = __stop_hs_lookups;
#endif
}
