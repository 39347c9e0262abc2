/* How much of the program's memory can be read: system calls succeed, or report
 * an error, where the memory that they are given is not mapped. Writing to
 * /dev/null does not read it.
 *
 * Rules of this file: as in runtime.c.
 */
#include "runtime.h"
#include "system_call.h"

#define EFAULT 14
#define SET_BYTES 8 /* of the kernel's sigset_t */
#define PAGE 4096

/* rt_sigprocmask(2) reads the set before it looks at what is to be done with it,
 * and -1 is no answer to that. */
static int
can_be_read (uint64_t address)
{
  return system_call (SYS_rt_sigprocmask, -1, (long) (address & ~7UL), 0, SET_BYTES)
         != -EFAULT;
}

static uint64_t
ask_for_each_page (uint64_t from, uint64_t bytes)
{
  uint64_t at = from;
  while (at < from + bytes)
  {
    if (!can_be_read (at))
      return at - from;
    at = at / PAGE * PAGE + PAGE;
  }
  return bytes;
}

#ifndef HS_SELF_CONTAINED
/* Touches each page. hs_on_fatal, or the recorder, moves a thread that faults
 * from hs_readable_load to hs_readable_fault. A handler of the program would
 * see the fault. */
uint64_t hs_touch_each_page (const void * from, uint64_t bytes);
__asm__ (".text\n"
         ".hidden hs_touch_each_page\n"
         ".globl hs_touch_each_page\n"
         ".hidden hs_readable_load, hs_readable_fault\n"
         ".globl hs_readable_load, hs_readable_fault\n"
         ".type hs_readable_load, @function\n"
         ".type hs_readable_fault, @function\n"
         ".type hs_touch_each_page, @function\n"
         "hs_touch_each_page:\n"
         "  .cfi_startproc\n"
         "  xor %eax, %eax\n"
         "1:\n"
         "  cmp %rsi, %rax\n"
         "  jae 2f\n"
         "hs_readable_load:\n"
         "  movzbl (%rdi,%rax), %ecx\n"
         "  lea (%rdi,%rax), %rcx\n"
         "  or $0xfff, %rcx\n"
         "  sub %rdi, %rcx\n"
         "  lea 1(%rcx), %rax\n"
         "  jmp 1b\n"
         "2:\n"
         "  mov %rsi, %rax\n"
         "hs_readable_fault:\n"
         "  ret\n"
         "  .cfi_endproc\n"
         ".size hs_touch_each_page, . - hs_touch_each_page\n");
#endif

/* Is it unknown whether the program allows this system call? Static programs may
 * have no handler of ours: there it is made, in the hope that a sandbox allows it. */
static int
may_be_forbidden (void)
{
#ifndef HS_SELF_CONTAINED
  return hs_in_sandbox || hs_runtime.control->sandbox != HS_SANDBOX_SEEN;
#else
  return (int) hs_in_sandbox;
#endif
}

uint64_t
hs_readable (const void * from, uint64_t bytes)
{
  if (!may_be_forbidden ())
    return ask_for_each_page ((uint64_t) from, bytes);
#ifndef HS_SELF_CONTAINED
  return hs_touch_each_page (from, bytes);
#else
  return bytes;
#endif
}
