/* Limits on memory (setrlimit(2)): the kernel counts what the recorder has
 * reserved for them. So the actual limits exceed those that the program has
 * set and sees by that amount, and before it becomes another program, its own
 * limits are restored.
 *
 * The rules of runtime.c and of interpose.c hold. Children of fork have the
 * same mappings, and do the same; so does a child of vfork, whose limits are
 * its own.
 */
#include "runtime.h"
#include "system_call.h"

#include <linux/capability.h>
#include <linux/resource.h>

#define LIMIT_OF_DATA 2 /* RLIMIT_ of setrlimit(2) */
#define LIMIT_OF_SPACE 9

/* The originals of the replaced functions. None of them does more than the
 * system call that is made here, and `syscall` may exist without them. */
void * hs_original_setrlimit, * hs_original_getrlimit, * hs_original_prlimit;

/* Bytes, from the control page, which children of fork do not have. */
static uint64_t reserved_space, reserved_data;

void
hs_note_reserved (void)
{
  reserved_space = hs_runtime.control->reserved_space;
  reserved_data = hs_runtime.control->reserved_data;
}

static uint64_t
reserved_for (int resource)
{
  if (hs_alive == HS_MAGIC)
    hs_note_reserved ();
  return resource == LIMIT_OF_SPACE ? reserved_space
      : resource == LIMIT_OF_DATA ? reserved_data : 0;
}

/* No limit stays none. */
static uint64_t
raised (uint64_t limit, uint64_t by)
{
  return limit + by < limit ? limit : limit + by;
}

/* A smaller limit was not set through us. */
static uint64_t
lowered (uint64_t limit, uint64_t by)
{
  return limit == ~0UL || limit < by ? limit : limit - by;
}

static int
is_this_process (int pid)
{
  return pid == 0 || (!hs_is_sandboxed () && pid == (int) system_call (SYS_getpid, 0, 0, 0, 0));
}

int
hs_prlimit (int pid, int resource, const struct rlimit64 * new, struct rlimit64 * old)
{
  uint64_t by = reserved_for (resource);
  struct rlimit64 higher;
  if (by != 0 && !is_this_process (pid))
    by = 0;
  if (by != 0 && new != NULL)
  {
    higher.rlim_cur = raised (new->rlim_cur, by);
    higher.rlim_max = raised (new->rlim_max, by);
    new = &higher;
  }
  long result = system_call (SYS_prlimit64, pid, resource, (long) new, (long) old);
  if (result == 0 && by != 0 && old != NULL)
  {
    old->rlim_cur = lowered (old->rlim_cur, by);
    old->rlim_max = lowered (old->rlim_max, by);
  }
  return hs_returned (result);
}

int
hs_setrlimit (int resource, const struct rlimit64 * limit)
{
  return hs_prlimit (0, resource, limit, NULL);
}

int
hs_getrlimit (int resource, struct rlimit64 * limit)
{
  return hs_prlimit (0, resource, NULL, limit);
}

static void
lower_by (int resource, uint64_t by)
{
  struct rlimit64 limit;
  if (system_call (SYS_prlimit64, 0, resource, 0, (long) &limit) != 0 || limit.rlim_cur == ~0UL)
    return;
  limit.rlim_cur = lowered (limit.rlim_cur, by);
  limit.rlim_max = lowered (limit.rlim_max, by);
  system_call (SYS_prlimit64, 0, resource, (long) &limit, 0);
}

/* A child of fork has all reservations except the shared memory. */
void
hs_lower_in_child (void)
{
  const uint64_t shared = HS_ASKS_OFFSET + sizeof (struct hs_asks);
  if (reserved_space < shared || hs_in_sandbox)
    return;
  reserved_space -= shared;
  lower_by (LIMIT_OF_SPACE, shared);
}

/* May the process raise a hard limit again? */
static int
may_raise (void)
{
  struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
  struct __user_cap_data_struct held[2];
  return system_call (SYS_capget, (long) &header, (long) held, 0, 0) == 0
      && (held[0].effective >> CAP_SYS_RESOURCE & 1);
}

/* `found.rlim_cur` 0: nothing is to be restored. */
static void
lower (int resource, struct rlimit64 * found)
{
  uint64_t by = reserved_for (resource);
  struct rlimit64 own;
  if (by == 0 || system_call (SYS_prlimit64, 0, resource, 0, (long) found) != 0)
  {
    found->rlim_cur = 0;
    return;
  }
  own.rlim_cur = lowered (found->rlim_cur, by);
  own.rlim_max = found->rlim_max;
  if (own.rlim_max != ~0UL && may_raise ())
    own.rlim_max = lowered (own.rlim_max, by);
  if (own.rlim_cur == found->rlim_cur && own.rlim_max == found->rlim_max)
    found->rlim_cur = 0;
  else
    system_call (SYS_prlimit64, 0, resource, (long) &own, 0);
}

/* The calling process is about to become another program, in which nothing is
 * reserved. A hard limit stays if the process could not raise it again after a
 * failure. */
void
hs_lower_limits (struct hs_limits * found)
{
  found->space[0] = found->data[0] = 0;
  if (hs_is_sandboxed ())
    return;
  lower (LIMIT_OF_SPACE, (struct rlimit64 *) found->space);
  lower (LIMIT_OF_DATA, (struct rlimit64 *) found->data);
}

/* It did not become another program. */
void
hs_put_limits_back (const struct hs_limits * found)
{
  if (found->space[0] != 0)
    system_call (SYS_prlimit64, 0, LIMIT_OF_SPACE, (long) found->space, 0);
  if (found->data[0] != 0)
    system_call (SYS_prlimit64, 0, LIMIT_OF_DATA, (long) found->data, 0);
}
