/* Traps of live control, once the process that set them is gone.
 *
 * While it lives, it traces the program and no trap gets here. The kernel
 * releases the program when it dies, and passes on the trap at which a thread
 * stood. Its guardian then removes the traps, and a thread that runs into one
 * before that waits here. The program's own traps work as they do without us.
 *
 * All signals are blocked here: a handler of the program that ran into a trap
 * now, with SIGTRAP blocked, would end it.
 *
 * Rules of this file: as in runtime.c. It is a signal handler.
 */
#define _GNU_SOURCE /* REG_RIP */
#include "runtime.h"
#include "system_call.h"

#include <linux/futex.h>
#include <signal.h>
#include <time.h>
#include <ucontext.h>

#define TRAP_OF_KERNEL 0x80 /* si_code of int3 */
#define TRAP_OF_INT1 1 /* or of a debug trap whose reason is lost */
#define TRAP_OF_STEP 2
#define TRAP_OF_DEBUG_REGISTER 4
#define TRAP_FLAG 0x100
#define INT1 0xf1

struct kernel_sigaction
{
  void (* handler) (int, siginfo_t *, void *);
  unsigned long flags;
  void (* restorer) (void);
  unsigned long mask;
};

extern volatile uint64_t hs_alive;
void hs_trap_return (void);
void hs_on_trap (int signal, siginfo_t * info, void * context);

__asm__ (".text\n"
         ".globl hs_trap_return\n"
         ".hidden hs_trap_return\n"
         ".type hs_trap_return, @function\n"
         "hs_trap_return:\n"
         "  mov $15, %eax\n"
         "  syscall\n"
         ".size hs_trap_return, . - hs_trap_return\n");

static int
recorder_is_gone (void)
{
  uint32_t owner;
  if (hs_alive != HS_MAGIC) /* a forked child: its parent's recorder is not its */
    return 0;
  /* Of its threads, the one that traced us may be the first to die. */
  if ((hs_runtime.control->tracer & FUTEX_OWNER_DIED) != 0)
    return 1;
  owner = hs_runtime.control->owner;
  return (owner & FUTEX_OWNER_DIED) != 0 || (owner & FUTEX_TID_MASK) == 0;
}

/* A step or a watched access. The kernel leaves both on when the recorder dies.
 * It ends the step before this handler, and hides the trap flag from it: one
 * that shows is the program's own. */
static int
is_left_over (const siginfo_t * info, const greg_t * registers)
{
  uint64_t at = (uint64_t) registers[REG_RIP];
  switch (info->si_code)
  {
    case TRAP_OF_DEBUG_REGISTER:
      return 1;
    case TRAP_OF_STEP:
      return !(registers[REG_EFL] & TRAP_FLAG);
    case TRAP_OF_INT1:
      /* The page before may not be there. */
      return !(registers[REG_EFL] & TRAP_FLAG)
          && ((at & 0xfff) == 0 || *(const uint8_t *) (at - 1) != INT1);
    default:
      return 0;
  }
}

/* The recorder installs it once Frida, which has its own handler while it is
 * loaded, has left. */
void
hs_on_trap (int signal, siginfo_t * info, void * context)
{
  ucontext_t * interrupted = context;
  struct kernel_sigaction usual = { 0, 0, 0, 0 };
  if (recorder_is_gone ())
  {
    if (is_left_over (info, interrupted->uc_mcontext.gregs))
      return;
    if (info->si_code == TRAP_OF_KERNEL)
    {
      struct timespec pause = { 0, 1000000 };
      interrupted->uc_mcontext.gregs[REG_RIP] -= 1;
      system_call (SYS_nanosleep, (long) &pause, 0, 0, 0);
      return;
    }
  }
  /* The program's own trap, without a handler: the program ends, as it would
   * have. */
  system_call (SYS_rt_sigaction, signal, (long) &usual, 0, 8);
  if (info->si_code == TRAP_OF_KERNEL)
    interrupted->uc_mcontext.gregs[REG_RIP] -= 1;
  else
    system_call (SYS_tgkill, system_call (SYS_getpid, 0, 0, 0, 0),
                 system_call (SYS_gettid, 0, 0, 0, 0), signal, 0);
}
