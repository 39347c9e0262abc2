/* The last moment of the program: a signal that it does not handle, or its
 * exit. The thread publishes its state and waits until the recorder has read
 * it; then it ends as it would have.
 *
 * Our handler handles signals that end a program by default. The program's
 * queries about its handlers and its signal stacks are answered as if it did
 * not exist, and the signal is raised again, with the default action, at the
 * thread's original place: status, core dump and registers are the same.
 *
 * The self-contained runtime is told by the recorder whether the program can
 * ask about signals in ways that are not answered; then nothing is wanted.
 *
 * In a program that the recorder has started, its first instruction is ours. In
 * one that ran before, a thread does the same while all are stopped, and again
 * when the recorder leaves the program running: what the program has asked the
 * kernel for is then as before. Such a program gets no signal stacks.
 *
 * Rules of this file: as in runtime.c. It has a signal handler, and errno is
 * the program's.
 */
#define _GNU_SOURCE
#include "runtime.h"
#include "system_call.h"

#include <errno.h>
#include <linux/prctl.h>
#include <signal.h>
#include <time.h>
#include <ucontext.h>

/* Of each signal stack. Programs without their own signal stack run no handler
 * on it. */
#define STACK_BYTES (64 << 10)
/* The word of a ucontext_t that rip is in. */
#define CONTEXT_RIP 21
/* The kernel's flag for actions with a restorer. */
#define SA_RESTORER 0x04000000UL
/* Polls of the recorder's word before sleeping between two of them. */
#define SPINS 20000

void hs_trap_return (void);
void hs_first_instruction (void);
void hs_on_fatal (int signal, siginfo_t * info, void * context);

int (* hs_original___libc_sigaction) (int, const struct sigaction *, struct sigaction *);
int (* hs_original_sigaltstack) (const stack_t *, stack_t *);
void (* hs_original__exit) (int);
void (* hs_original_abort) (void);

static const uint8_t fatal[] = {
  SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS,
  SIGTERM, SIGINT, SIGHUP, SIGQUIT,
};

/* 1: the handler is in use; 2: no longer. */
static volatile uint32_t catching;
/* 1: the program ran before the recorder came, with signal stacks of its own or none. */
static uint32_t ran_before;
/* 1: the program has entered a sandbox. */
static volatile uint32_t sandboxed;
/* The flags and masks that came with a default action, for later queries. */
static int default_flags[_NSIG];
static uint64_t default_masks[_NSIG];
/* The same before the change that is being made; at other times, as above. */
static int former_flags[_NSIG];
static uint64_t former_masks[_NSIG];
/* Handlers of the program that want a signal stack, while it has none. */
static volatile uint64_t without_stack;
static volatile uint32_t program_has_stack;
/* One for each ring's thread, and one for the main thread before it has a ring. */
static uint64_t stacks[HS_RINGS + 1];

static int
is_fatal (int signal)
{
  for (unsigned n = 0; n != sizeof fatal; n++)
    if (fatal[n] == signal)
      return 1;
  return 0;
}

/* Is this the recorded process, and not a child that borrows its memory? */
static uint32_t
own_tid (void)
{
  const struct hs_local * local;
  uint32_t tid;
  if (hs_alive != HS_MAGIC || hs_is_in_vfork () || sandboxed || hs_recording_ended ())
    return 0;
  local = hs_own_local ();
  if (hs_is_sandboxed ())
    return local != NULL ? local->tid : 0;
  tid = (uint32_t) system_call (SYS_gettid, 0, 0, 0, 0);
  if ((local != NULL && local->tid == tid)
      || (uint32_t) system_call (SYS_getpid, 0, 0, 0, 0) == hs_runtime.control->main_tid)
    return tid;
  return 0;
}

/* Shows the thread to the recorder and waits until it has read the state. */
static void
show (uint32_t tid, int signal, const siginfo_t * info, const void * context)
{
  struct hs_control * control = hs_runtime.control;
  struct timespec pause = { 0, 200000 };
  uint32_t first = 0;
  if (!__atomic_compare_exchange_n (&control->last_tid, &first, tid, 0,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
  {
    /* Another thread ends the program, unless this one was the first. */
    while (first != tid && !hs_recording_ended ())
      __builtin_ia32_pause ();
    return;
  }
  control->last_signal = (uint32_t) signal;
  control->last_info = (uint64_t) info;
  control->last_context = (uint64_t) context;
  __atomic_store_n (&control->last_state, HS_LAST_ASKED, __ATOMIC_SEQ_CST);
  for (unsigned spins = 0; control->last_state != HS_LAST_DONE && !hs_recording_ended ();)
  {
    hs_wake_recorder ();
    if (spins < SPINS || control->last_state == HS_LAST_ASKED || control->last_sandboxed)
      __builtin_ia32_pause ();
    else
      system_call (SYS_nanosleep, (long) &pause, 0, 0, 0);
    spins += spins < SPINS;
  }
}

/* Raises the signal again, now with its default action. */
static void
send_again (int signal, siginfo_t * info, ucontext_t * interrupted)
{
  struct hs_kernel_sigaction usual = { 0, 0, 0, 0 };
  long pid, tid;
  int is_fault = info->si_code > 0
      && (signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL);
  if (is_fault && hs_is_sandboxed ())
  {
    /* The instruction faults again; blocked, that is fatal. */
    *(uint64_t *) &interrupted->uc_sigmask |= 1UL << (signal - 1);
    return;
  }
  system_call (SYS_rt_sigaction, signal, (long) &usual, 0, 8);
  pid = system_call (SYS_getpid, 0, 0, 0, 0);
  tid = system_call (SYS_gettid, 0, 0, 0, 0);
  if (system_call (SYS_rt_tgsigqueueinfo, pid, tid, signal, (long) info) != 0)
    system_call (SYS_tgkill, pid, tid, signal, 0);
}

/* The program has forbidden the thread the time stamp counter by its own
 * system call, and the runtime has just read it: emulates the read, and the
 * thread records nothing from then on. */
int
hs_answer_time (void * context)
{
  greg_t * registers = ((ucontext_t *) context)->uc_mcontext.gregs;
  const uint8_t * at = (const uint8_t *) registers[REG_RIP];
  uint32_t low, high;
  if ((uint64_t) at - hs_runtime.own_base >= hs_runtime.own_size
      || at[0] != 0x0f || at[1] != 0x31 /* rdtsc */)
    return 0;
  if (hs_is_sandboxed ())
  {
    /* Nothing else makes the counter fault, and it can no longer be allowed. */
    registers[REG_RAX] = (greg_t) (uint32_t) hs_runtime.latest;
    registers[REG_RDX] = (greg_t) (hs_runtime.latest >> 32);
    registers[REG_RIP] += 2;
    hs_forbid_time (1);
    return 1;
  }
  if (!hs_time_is_forbidden ())
    return 0;
  system_call (SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE, 0, 0);
  __asm__ volatile ("rdtsc" : "=a" (low), "=d" (high));
  registers[REG_RAX] = low;
  registers[REG_RDX] = high;
  registers[REG_RIP] += 2;
  hs_forbid_time (0);
  system_call (SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0);
  return 1;
}

/* The runtime has touched memory of the program that is not there. */
#ifndef HS_SELF_CONTAINED
extern const uint8_t hs_readable_load[], hs_readable_fault[];

static int
answer_touch (ucontext_t * interrupted)
{
  greg_t * registers = interrupted->uc_mcontext.gregs;
  if ((uint64_t) registers[REG_RIP] != (uint64_t) hs_readable_load)
    return 0;
  registers[REG_RIP] = (greg_t) (uint64_t) hs_readable_fault;
  return 1;
}
#else
/* It never does. */
static int
answer_touch (ucontext_t * interrupted)
{
  (void) interrupted;
  return 0;
}
#endif

void
hs_on_fatal (int signal, siginfo_t * info, void * context)
{
  uint32_t tid;
  if (signal == SIGSEGV && hs_answer_time (context))
    return;
  if ((signal == SIGSEGV || signal == SIGBUS) && answer_touch (context))
    return;
  tid = own_tid ();
  if (tid != 0)
  {
    const greg_t * registers = ((ucontext_t *) context)->uc_mcontext.gregs;
    hs_record_interrupted_output ((uint64_t) registers[REG_RIP],
                                  (uint64_t) registers[REG_RAX],
                                  (uint64_t) registers[REG_RDI],
                                  (uint64_t) registers[REG_RSI],
                                  (uint64_t) registers[REG_RDX]);
    show (tid, signal, info, context);
  }
  send_again (signal, info, context);
}

/* A handler of the program aborts on its own signal stack. There may be no
 * room for another handler: shows the registers, which hs_abort has stored in
 * the layout of a ucontext_t, and leaves the signal its default action. */
void hs_about_to_abort (uint64_t * context);

__attribute__ ((used)) void
hs_about_to_abort (uint64_t * context)
{
  struct hs_kernel_sigaction found, usual = { 0, 0, 0, 0 };
  stack_t there = { .ss_flags = 0 };
  uint32_t tid;
  if (catching != 1 || hs_is_sandboxed ()
      || system_call (SYS_sigaltstack, 0, (long) &there, 0, 0) != 0
      || !(there.ss_flags & SS_ONSTACK)
      || system_call (SYS_rt_sigaction, SIGABRT, 0, (long) &found, 8) != 0
      || found.handler != (uint64_t) hs_on_fatal)
    return;
  context[CONTEXT_RIP] = (uint64_t) hs_original_abort;
  tid = own_tid ();
  if (tid != 0)
    show (tid, SIGABRT, NULL, context);
  system_call (SYS_rt_sigaction, SIGABRT, (long) &usual, 0, 8);
}

/* In the place of `abort`. */
__asm__ (".text\n"
         ".globl hs_abort\n"
         ".hidden hs_abort\n"
         ".type hs_abort, @function\n"
         "hs_abort:\n"
         "  .cfi_startproc\n"
         "  sub $824, %rsp\n"
         "  .cfi_adjust_cfa_offset 824\n"
         "  mov %r8, 40(%rsp)\n"
         "  mov %r9, 48(%rsp)\n"
         "  mov %r10, 56(%rsp)\n"
         "  mov %r11, 64(%rsp)\n"
         "  mov %r12, 72(%rsp)\n"
         "  mov %r13, 80(%rsp)\n"
         "  mov %r14, 88(%rsp)\n"
         "  mov %r15, 96(%rsp)\n"
         "  mov %rdi, 104(%rsp)\n"
         "  mov %rsi, 112(%rsp)\n"
         "  mov %rbp, 120(%rsp)\n"
         "  mov %rbx, 128(%rsp)\n"
         "  mov %rdx, 136(%rsp)\n"
         "  mov %rax, 144(%rsp)\n"
         "  mov %rcx, 152(%rsp)\n"
         "  lea 824(%rsp), %rax\n"
         "  mov %rax, 160(%rsp)\n"
         "  pushf\n"
         "  .cfi_adjust_cfa_offset 8\n"
         "  pop %rax\n"
         "  .cfi_adjust_cfa_offset -8\n"
         "  mov %rax, 176(%rsp)\n"
         "  fxsave64 240(%rsp)\n"
         "  lea 240(%rsp), %rax\n"
         "  mov %rax, 224(%rsp)\n"
         "  mov %rsp, %rdi\n"
         "  call hs_about_to_abort\n"
         "  add $824, %rsp\n"
         "  .cfi_adjust_cfa_offset -824\n"
         "  jmp *hs_original_abort(%rip)\n"
         "  .cfi_endproc\n"
         ".size hs_abort, . - hs_abort\n");

/* The program exits: its memory still exists. Freeing that, and noticing the
 * end, takes time that is not the program's. */
void
hs_exit (int status)
{
  if (hs_alive == HS_MAGIC)
  {
    uint32_t tid = own_tid ();
    if (tid != 0)
      hs_note_end ();
    if (tid != 0 && !hs_runtime.time_was_forbidden)
    {
      /* A recorder that sees a later record of another thread sees this. */
      hs_runtime.control->exit_ticks = HS_EXITING;
      __asm__ volatile ("mfence; lfence" : : : "memory");
      hs_runtime.control->exit_ticks = __builtin_ia32_rdtsc ();
    }
    if (tid != 0 && (hs_runtime.control->last_wanted & HS_LAST_EXIT))
      show (tid, 0, NULL, NULL);
  }
  hs_original__exit (status);
  __builtin_unreachable ();
}

/* Where the calling thread's signal stack of ours is noted; NULL: it has none. */
#ifndef HS_SELF_CONTAINED
static uint64_t *
own_signal_stack (void)
{
  struct hs_local * local = hs_own_local ();
  return local != NULL ? &local->signal_stack : NULL;
}
#else
/* The main thread has one before it has a place of its own. */
static uint64_t stack_of_main;

static uint64_t *
own_signal_stack (void)
{
  struct hs_local * local = hs_own_local ();
  uint32_t tid = 0;
  if (local != NULL)
    tid = local->tid;
  else if (!hs_is_sandboxed ())
    tid = (uint32_t) system_call (SYS_gettid, 0, 0, 0, 0);
  if (tid == hs_runtime.control->main_tid)
    return &stack_of_main;
  return local != NULL ? &local->signal_stack : NULL;
}
#endif

static void
set_stack (uint64_t at, uint64_t * noted)
{
  stack_t ours = { .ss_sp = (void *) at, .ss_flags = 0, .ss_size = STACK_BYTES };
  if (system_call (SYS_sigaltstack, (long) &ours, 0, 0, 0) == 0)
    *noted = at;
}

/* A thread that has used up its stack has no room for a handler: gives it a
 * signal stack, unless it has one. */
void
hs_give_signal_stack (unsigned index)
{
  stack_t there = { .ss_flags = 0 };
  uint64_t * noted;
  if (catching != 1 || ran_before || hs_in_sandbox
      || system_call (SYS_sigaltstack, 0, (long) &there, 0, 0) != 0
      || !(there.ss_flags & SS_DISABLE))
    return;
  if (stacks[index] == 0)
  {
    long flags = 0x4022; /* PRIVATE, ANONYMOUS, NORESERVE */
    long at = system_call6 (SYS_mmap, 0, STACK_BYTES, 3 /* READ, WRITE */, flags, -1, 0);
    if (at < 0)
      return;
    stacks[index] = (uint64_t) at;
  }
  noted = own_signal_stack ();
  if (noted != NULL)
    set_stack (stacks[index], noted);
}

static void
ours_into (struct hs_kernel_sigaction * action)
{
  action->handler = (uint64_t) hs_on_fatal;
  action->flags = SA_SIGINFO | SA_ONSTACK | SA_RESTORER;
  action->restorer = (uint64_t) hs_trap_return;
  action->mask = ~0UL;
}

/* A default action, with the flags and the mask that came with it. */
static struct hs_kernel_sigaction
default_action (int signal)
{
  return (struct hs_kernel_sigaction) {
    .flags = (unsigned) default_flags[signal],
    .mask = default_masks[signal],
  };
}

static void
note_default (int signal, const struct hs_kernel_sigaction * found)
{
  default_flags[signal] = former_flags[signal] = (int) (found->flags & ~SA_RESTORER);
  default_masks[signal] = former_masks[signal] = found->mask;
}

static int
can_be_hidden (void)
{
#ifndef HS_SELF_CONTAINED
  return hs_original___libc_sigaction != NULL && hs_original_sigaltstack != NULL;
#else
  return 1; /* what a static program does not contain it does not call */
#endif
}

/* Handles the signals that would end the program, if that is wanted and can be
 * hidden from it. Once. */
void
hs_catch_signals (void)
{
  if (catching != 0 || hs_in_sandbox || !can_be_hidden ()
      || !(hs_runtime.control->last_wanted & HS_LAST_SIGNALS))
    return;
  catching = 1;
  for (unsigned n = 0; n != sizeof fatal; n++)
  {
    struct hs_kernel_sigaction found, ours;
    if (system_call (SYS_rt_sigaction, fatal[n], 0, (long) &found, 8) != 0
        || found.handler != 0)
      continue;
    note_default (fatal[n], &found);
    ours_into (&ours);
    system_call (SYS_rt_sigaction, fatal[n], (long) &ours, 0, 8);
  }
}

/* Removes the handler: in a sandbox it could not do its work, and a program that
 * is left running has the actions that it had. */
static void
stop_catching (void)
{
  if (catching != 1)
    return;
  catching = 2;
  for (unsigned n = 0; n != sizeof fatal; n++)
  {
    struct hs_kernel_sigaction found, usual = default_action (fatal[n]);
    if (system_call (SYS_rt_sigaction, fatal[n], 0, (long) &found, 8) == 0
        && found.handler == (uint64_t) hs_on_fatal)
      system_call (SYS_rt_sigaction, fatal[n], (long) &usual, 0, 8);
  }
}

/* A thread of the stopped program runs one of these two. Both stop in a trap
 * after the call, with the result in rax. */
__asm__ (".text\n"
         ".type hs_begin_catching, @function\n"
         "hs_begin_catching:\n"
         "  .cfi_startproc\n"
         "  call hs_catch_in_running\n"
         "  int3\n"
         "  .cfi_endproc\n"
         ".size hs_begin_catching, . - hs_begin_catching\n"
         ".type hs_end_catching, @function\n"
         "hs_end_catching:\n"
         "  .cfi_startproc\n"
         "  call hs_catch_no_longer\n"
         "  int3\n"
         "  .cfi_endproc\n"
         ".size hs_end_catching, . - hs_end_catching\n");

uint64_t hs_catch_in_running (void);
uint64_t hs_catch_no_longer (void);

/* Returns 1 if signals are handled now. Which threads have signal stacks is not
 * known, so the program's handlers may run on them as before. */
__attribute__ ((used)) uint64_t
hs_catch_in_running (void)
{
  ran_before = 1;
  program_has_stack = 1;
  hs_catch_signals ();
  return catching == 1;
}

/* Returns 1: no handler of ours is left. */
__attribute__ ((used)) uint64_t
hs_catch_no_longer (void)
{
  stop_catching ();
  return 1;
}

/* A library that takes over signals was loaded: the recorder no longer wants
 * any. */
void
hs_look_for_signals (void)
{
  if (hs_alive == HS_MAGIC && !hs_in_sandbox
      && !(hs_runtime.control->last_wanted & HS_LAST_SIGNALS))
    stop_catching ();
}

/* No call of memset: a static program may have none. */
static void
fill (void * to, uint8_t byte, size_t bytes)
{
  __asm__ volatile ("rep stosb" : "+D" (to), "+c" (bytes) : "a" (byte) : "memory");
}

/* Puts a front before the program's handler. The kernel removes a handler that
 * is to be called once when it calls the front: such a one has none. */
static void
put_front (int signal, struct sigaction * action)
{
  if (signal == SIGSEGV && action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN
      && !(action->sa_flags & SA_RESETHAND) && !hs_is_in_vfork ())
    action->sa_handler = (__sighandler_t) hs_front_of ((uint64_t) action->sa_handler);
}

/* Puts the program's action into the argument for the kernel. */
static void
translate_new (int signal, struct sigaction * action)
{
  put_front (signal, action);
  if (action->sa_handler == SIG_DFL && is_fatal (signal))
  {
    default_flags[signal] = action->sa_flags;
    default_masks[signal] = *(const uint64_t *) &action->sa_mask;
    action->sa_sigaction = hs_on_fatal;
    action->sa_flags = SA_SIGINFO | SA_ONSTACK;
    fill (&action->sa_mask, 0xff, 8);
    return;
  }
  if (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN
      || !(action->sa_flags & SA_ONSTACK) || program_has_stack)
  {
    __atomic_fetch_and (&without_stack, ~(1UL << (signal - 1)), __ATOMIC_SEQ_CST);
    return;
  }
  __atomic_fetch_or (&without_stack, 1UL << (signal - 1), __ATOMIC_SEQ_CST);
  action->sa_flags &= ~SA_ONSTACK;
}

int
hs_sigaction (int signal, const struct sigaction * new, struct sigaction * old)
{
  struct sigaction passed, found;
  int flags, had_no_stack, result;
  uint64_t mask;
  if (catching == 0 || signal < 1 || signal >= _NSIG)
    return hs_original___libc_sigaction (signal, new, old);
  flags = default_flags[signal];
  mask = default_masks[signal];
  had_no_stack = without_stack >> (signal - 1) & 1;
  if (new != NULL)
  {
    passed = *new;
    if (catching == 1)
      translate_new (signal, &passed);
  }
  former_flags[signal] = flags;
  former_masks[signal] = mask;
  result = hs_original___libc_sigaction (signal, new != NULL ? &passed : NULL,
                                         old != NULL ? &found : NULL);
  former_flags[signal] = default_flags[signal];
  former_masks[signal] = default_masks[signal];
  if (result != 0 || old == NULL)
    return result;
  if (found.sa_sigaction == hs_on_fatal)
  {
    found.sa_handler = SIG_DFL;
    found.sa_flags = flags;
    fill (&found.sa_mask, 0, sizeof found.sa_mask);
    *(uint64_t *) &found.sa_mask = mask;
  }
  else if (had_no_stack)
    found.sa_flags |= SA_ONSTACK;
  found.sa_handler = (__sighandler_t) hs_behind_front ((uint64_t) found.sa_handler);
  *old = found;
  return result;
}

/* Puts into an action that the C library passes to the kernel, or gets from it (`is_old`), what the program passes or gets. */
void
hs_as_program_sees (uint64_t signal, struct hs_kernel_sigaction * action, int is_old)
{
  if (catching == 0 || signal < 1 || signal >= _NSIG)
    return;
  action->handler = hs_behind_front (action->handler);
  if (action->handler == (uint64_t) hs_on_fatal)
  {
    uint64_t restores = action->flags & SA_RESTORER;
    action->handler = 0;
    action->flags = (unsigned) (is_old ? former_flags : default_flags)[signal];
    action->mask = (is_old ? former_masks : default_masks)[signal];
    if (action->restorer == (uint64_t) hs_trap_return)
      action->restorer = 0;
    else
      action->flags |= restores;
  }
  else if (without_stack >> (signal - 1) & 1)
    action->flags |= SA_ONSTACK;
}

/* The program has its own signal stack: its handlers may run on it. */
static void
allow_stack (void)
{
  if (program_has_stack)
    return;
  program_has_stack = 1;
  for (int signal = 1; signal < _NSIG; signal++)
  {
    struct sigaction found;
    if (!(without_stack >> (signal - 1) & 1)
        || hs_original___libc_sigaction (signal, NULL, &found) != 0)
      continue;
    found.sa_flags |= SA_ONSTACK;
    hs_original___libc_sigaction (signal, &found, NULL);
  }
  without_stack = 0;
}

int
hs_sigaltstack (const stack_t * new, stack_t * old)
{
  uint64_t * noted = catching != 0 ? own_signal_stack () : NULL;
  uint64_t ours = noted != NULL ? *noted : 0;
  int disables = new != NULL && (new->ss_flags & SS_DISABLE);
  int result = hs_original_sigaltstack (new, old);
  if (result != 0 || ours == 0)
    return result;
  if (old != NULL && (uint64_t) old->ss_sp == ours)
  {
    old->ss_sp = NULL;
    old->ss_size = 0;
    old->ss_flags = SS_DISABLE;
  }
  if (disables && catching == 1)
    set_stack (ours, noted);
  else if (new != NULL && catching == 1)
    allow_stack ();
  return result;
}

/* A sandbox may forbid what our handler does: signals then end the program as
 * usual. */
void
hs_signals_are_left_alone (void)
{
  stop_catching ();
  sandboxed = 1;
}

/* A program that the recorder has started runs this first, with all registers
 * as at the entry point, whose address is on top of the stack. */
__asm__ (".text\n"
         ".globl hs_first_instruction\n"
         ".hidden hs_first_instruction\n"
         ".type hs_first_instruction, @function\n"
         "hs_first_instruction:\n"
         "  push %rax\n"
         "  push %rcx\n"
         "  push %rdx\n"
         "  push %rsi\n"
         "  push %rdi\n"
         "  push %r8\n"
         "  push %r9\n"
         "  push %r10\n"
         "  push %r11\n"
         "  push %rbp\n"
         "  mov %rsp, %rbp\n"
         "  and $-16, %rsp\n"
         "  call hs_begin\n"
         "  mov %rbp, %rsp\n"
         "  pop %rbp\n"
         "  pop %r11\n"
         "  pop %r10\n"
         "  pop %r9\n"
         "  pop %r8\n"
         "  pop %rdi\n"
         "  pop %rsi\n"
         "  pop %rdx\n"
         "  pop %rcx\n"
         "  pop %rax\n"
         "  ret\n"
         ".size hs_first_instruction, . - hs_first_instruction\n");

void hs_begin (void);

__attribute__ ((used)) void
hs_begin (void)
{
  hs_catch_signals ();
  hs_give_signal_stack (HS_RINGS);
}
