/* System calls without the C library, which must not see them: errno is the
 * program's, and no thread may be cancelled here.
 */
#ifndef HS_SYSTEM_CALL_H
#define HS_SYSTEM_CALL_H

#include <sys/syscall.h>

/* Returns what the kernel does: an error is negative. */
static inline long
system_call6 (long number, long a, long b, long c, long d, long e, long f)
{
  long result;
  register long r10 __asm__ ("r10") = d;
  register long r8 __asm__ ("r8") = e;
  register long r9 __asm__ ("r9") = f;
  __asm__ volatile ("syscall"
                    : "=a" (result)
                    : "a" (number), "D" (a), "S" (b), "d" (c), "r" (r10),
                      "r" (r8), "r" (r9)
                    : "rcx", "r11", "memory");
  return result;
}

static inline long
system_call (long number, long a, long b, long c, long d)
{
  return system_call6 (number, a, b, c, d, 0, 0);
}

#endif
