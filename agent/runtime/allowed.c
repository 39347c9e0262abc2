/* What a program forbids its threads, the runtime included: the time stamp
 * counter (PR_SET_TSC) and system calls (seccomp). Also the memory that it
 * locks, which must not include the terabytes that the recorder has reserved.
 *
 * A thread without the counter records nothing, and a gap reports that; in a
 * sandbox the runtime makes no system call. If the program can enter one
 * unseen by the runtime, the runtime asks the recorder before it makes system
 * calls.
 *
 * The rules of runtime.c and of interpose.c hold.
 */
#include "runtime.h"
#include "system_call.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/resource.h>

#define CURRENT 1 /* MCL_ of mlockall(2) */
#define FUTURE 2
#define ON_FAULT 4
#define LIMIT_OF_LOCKED 8 /* RLIMIT_MEMLOCK */
#define END_OF_PROGRAM (1UL << 47)
#define STRICT 1 /* SECCOMP_MODE_ of prctl(2) */

int (* hs_original_prctl) (int, ...);
int (* hs_original_mlockall) (int);
long (* hs_original_syscall) (long, ...);
#ifdef HS_SELF_CONTAINED
int * (* hs_original___errno_location) (void);
#endif

/* 1, permanently, once the program has entered one: a sandbox is never left. */
volatile uint32_t hs_in_sandbox;

/* Must the runtime make no system call? Code of the program may have entered a
 * sandbox unseen, by its own system call: then the recorder checks, and the
 * thread waits. A child of fork behaves like its parent. */
int
hs_is_sandboxed (void)
{
  struct hs_control * control = hs_runtime.control;
  uint32_t asked;
  if (hs_in_sandbox || hs_alive != HS_MAGIC || control->sandbox == HS_SANDBOX_SEEN)
    return (int) hs_in_sandbox;
  asked = __atomic_add_fetch (&control->sandbox_asked, 1, __ATOMIC_SEQ_CST);
  while ((int32_t) (control->sandbox_answered - asked) < 0)
  {
    if (hs_recording_ended ())
      return 1; /* nobody knows */
    __builtin_ia32_pause ();
  }
  if (control->sandbox >= HS_SANDBOX_ENTERED)
    hs_in_sandbox = 1;
  return (int) hs_in_sandbox;
}

/* The address of the C library's errno of the thread; NULL: it is linked in,
 * and the program never reads it. */
int *
hs_errno_location (void)
{
#ifndef HS_SELF_CONTAINED
  return &errno;
#else
  return hs_original___errno_location != NULL ? hs_original___errno_location () : NULL;
#endif
}

/* The system call's result in the form of a C library. */
int
hs_returned (long result)
{
  int * place;
  if (result >= 0)
    return (int) result;
  place = hs_errno_location ();
  if (place != NULL)
    *place = (int) -result;
  return -1;
}

/* Must this thread not read the time stamp counter? */
int
hs_time_is_forbidden (void)
{
  int mode = 0;
  long result = system_call (SYS_prctl, PR_GET_TSC, (long) &mode, 0, 0);
  return result == 0 && mode == PR_TSC_SIGSEGV;
}

int
hs_prctl (int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
  /* Strict mode forbids the counter too. */
  int forbids = (option == PR_SET_TSC && a == PR_TSC_SIGSEGV)
      || (option == PR_SET_SECCOMP && a == STRICT);
  /* Before it takes effect: afterwards our code may do nothing. */
  if (forbids)
    hs_forbid_time (0);
  /* A child of vfork has our memory, but its own sandbox. */
  if (option == PR_SET_SECCOMP && !hs_is_in_vfork ())
  {
    if (!hs_is_sandboxed ())
      hs_signals_are_left_alone ();
    hs_in_sandbox = 1;
  }
  int result = hs_original_prctl (option, a, b, c, d);
  if (option == PR_SET_NAME && result == 0)
    hs_record_name ((const char *) a);
  if (forbids ? result != 0 : option == PR_SET_TSC && a == PR_TSC_ENABLE && result == 0)
    hs_allow_time ();
  return result;
}

static struct hs_range
foreign (unsigned n)
{
  const volatile uint64_t * words = &hs_runtime.control->foreign[2 * n];
  struct hs_range range = { words[0], words[1] };
  return range;
}

/* Removes what is not the program's from the front of `range`, and moves what
 * follows it at the end to `rest`. */
static void
cut (struct hs_range * range, struct hs_range * rest)
{
  unsigned count = hs_runtime.control->foreign_count;
  rest->from = rest->to = range->to;
  /* Repeatedly, because they are unordered. */
  for (unsigned n = 0; n < count && range->from < range->to; n++)
  {
    struct hs_range not = foreign (n);
    if (not.to <= range->from || not.from >= range->to)
      continue;
    if (not.from > range->from)
    {
      rest->from = not.from;
      range->to = not.from;
    }
    else
    {
      range->from = not.to < range->to ? not.to : range->to;
      n = -1U;
    }
  }
}

/* Reads the list of mappings piece by piece. */
struct mappings
{
  int fd;
  unsigned at, end;
  struct hs_range rest; /* of the mapping read last */
  char text[1024];
};

static int
next_character (struct mappings * mappings)
{
  if (mappings->at == mappings->end)
  {
    long got = system_call (SYS_read, mappings->fd, (long) mappings->text, sizeof mappings->text, 0);
    if (got <= 0)
      return -1;
    mappings->at = 0;
    mappings->end = (unsigned) got;
  }
  return mappings->text[mappings->at++];
}

static int
next_number (struct mappings * mappings, uint64_t * number)
{
  int c;
  *number = 0;
  while ((c = next_character (mappings)) >= 0)
  {
    if (c >= '0' && c <= '9')
      *number = *number << 4 | (uint64_t) (c - '0');
    else if (c >= 'a' && c <= 'f')
      *number = *number << 4 | (uint64_t) (c - 'a' + 10);
    else
      return 1;
  }
  return 0;
}

/* The next mapping, or part of one, that belongs to the program; 0: none. */
static int
next_mapping (struct mappings * mappings, struct hs_range * range)
{
  for (;;)
  {
    int c;
    *range = mappings->rest;
    cut (range, &mappings->rest);
    if (range->from < range->to)
      return 1;
    if (mappings->rest.from < mappings->rest.to)
      continue;
    if (!next_number (mappings, &range->from) || !next_number (mappings, &range->to))
      return 0;
    while ((c = next_character (mappings)) != '\n')
      if (c < 0)
        return 0;
    if (range->to <= END_OF_PROGRAM)
      mappings->rest = *range;
  }
}

/* Locks all mappings of the program, on fault or at once, unless `count_only`
 * is set. Returns their size in bytes; 0: unknown. */
static uint64_t
each_mapping (int count_only, long on_fault)
{
  static const char path[] = "/proc/self/maps";
  struct mappings mappings; /* an initializer would call memset */
  struct hs_range range;
  uint64_t bytes = 0;
  mappings.at = mappings.end = 0;
  mappings.rest.from = mappings.rest.to = 0;
  mappings.fd = (int) system_call (SYS_open, (long) path, O_RDONLY | O_CLOEXEC, 0, 0);
  if (mappings.fd < 0)
    return 0;
  while (next_mapping (&mappings, &range))
  {
    bytes += range.to - range.from;
    /* The kernel also skips inaccessible pages such as guard pages. */
    if (!count_only)
      system_call (SYS_mlock2, (long) range.from, (long) (range.to - range.from), on_fault, 0);
  }
  system_call (SYS_close, mappings.fd, 0, 0, 0);
  return bytes;
}

static void
unlock_foreign (void)
{
  for (unsigned n = hs_runtime.control->foreign_count; n != 0; n--)
  {
    struct hs_range range = foreign (n - 1);
    system_call (SYS_munlock, (long) range.from, (long) (range.to - range.from), 0, 0);
  }
}

/* The kernel would count our reservations: so the limit is compared with the
 * program's own size, and its mappings are locked one by one. */
static int
lock_within_limit (int flags)
{
  struct rlimit64 limit = { 0, 0 };
  uint64_t bytes = each_mapping (1, 0);
  system_call (SYS_prlimit64, 0, LIMIT_OF_LOCKED, 0, (long) &limit);
  if (bytes == 0 || bytes > limit.rlim_cur)
    return hs_returned (-ENOMEM);
  if (flags & FUTURE)
  {
    long result = system_call (SYS_mlockall, flags & ~CURRENT, 0, 0, 0);
    if (result < 0)
      return hs_returned (result);
  }
  each_mapping (0, flags & ON_FAULT ? 1 : 0);
  return 0;
}

/* Locks the mappings on fault, which takes no memory; then the reservations
 * are unlocked, and the rest is loaded as requested. */
int
hs_mlockall (int flags)
{
  if (!(flags & CURRENT) || (flags & ~(CURRENT | FUTURE | ON_FAULT)) || hs_alive != HS_MAGIC)
    return hs_original_mlockall (flags);
  int is_sandboxed = hs_is_sandboxed ();
  long result = system_call (SYS_mlockall, flags | ON_FAULT, 0, 0, 0);
  if (result == -ENOMEM && !is_sandboxed)
    return lock_within_limit (flags);
  if (result < 0 || is_sandboxed)
    return hs_returned (result);
  unlock_foreign ();
  if (flags & ON_FAULT)
    return 0;
  if (flags & FUTURE)
    system_call (SYS_mlockall, FUTURE, 0, 0, 0);
  each_mapping (0, 0);
  return 0;
}
