/* What stands before the program's own handlers of SIGSEGV. If the program
 * forbids a thread the time stamp counter by its own system call, the runtime
 * faults when it reads it: that is answered, and the program's handler does not
 * see it. The program's queries about its handlers are answered as if nothing
 * stood before them.
 *
 * Each handler has a front of its own, which stays: a handler of somebody else
 * may have noted its address, and call it.
 *
 * Rules of this file: as in runtime.c. It has a signal handler.
 */
#define _GNU_SOURCE
#include "runtime.h"

#include <signal.h>

#define FRONTS 16
#define FRONT_BYTES 16 /* in the code below */

extern const uint8_t hs_fronts[];
void hs_front (int signal, siginfo_t * info, void * context, uint64_t number);

/* The program's handlers, by front; 0: none yet. */
static uint64_t handlers[FRONTS];

/* The kernel calls these with three arguments. */
__asm__ (".text\n"
         ".p2align 4\n"
         ".type hs_fronts, @function\n"
         "hs_fronts:\n"
         "  .set number, 0\n"
         "  .rept 16\n"
         "  .p2align 4\n"
         "  mov $number, %ecx\n"
         "  jmp hs_front\n"
         "  .set number, number + 1\n"
         "  .endr\n"
         "  .p2align 4\n"
         ".size hs_fronts, . - hs_fronts\n");

__attribute__ ((used)) void
hs_front (int signal, siginfo_t * info, void * context, uint64_t number)
{
  if (!hs_answer_time (context))
    ((void (*) (int, siginfo_t *, void *)) handlers[number]) (signal, info, context);
}

/* Returns the front of one of the program's handlers, or the handler itself if
 * there are no more. */
uint64_t
hs_front_of (uint64_t handler)
{
  for (unsigned n = 0; n != FRONTS; n++)
  {
    uint64_t found = 0;
    if (__atomic_compare_exchange_n (&handlers[n], &found, handler, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
        || found == handler)
      return (uint64_t) hs_fronts + n * FRONT_BYTES;
  }
  return handler;
}

/* Returns the program's handler if it is a front, or else what it is. */
uint64_t
hs_behind_front (uint64_t handler)
{
  uint64_t distance = handler - (uint64_t) hs_fronts;
  return distance < FRONTS * FRONT_BYTES ? handlers[distance / FRONT_BYTES] : handler;
}
