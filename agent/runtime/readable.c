/* How much of the program's memory can be read: system calls succeed, or report
 * an error, where the memory that they are given is not mapped. Writing to
 * /dev/null does not read it.
 *
 * Rules of this file: as in runtime.c.
 */
#include "runtime.h"

#ifndef HS_SELF_CONTAINED
/* Touches each page. hs_on_fatal, or the recorder, moves a thread that faults
 * from hs_readable_load to hs_readable_fault. */
__asm__ (".text\n"
         ".hidden hs_readable\n"
         ".globl hs_readable\n"
         ".hidden hs_readable_load, hs_readable_fault\n"
         ".globl hs_readable_load, hs_readable_fault\n"
         ".type hs_readable_load, @function\n"
         ".type hs_readable_fault, @function\n"
         ".type hs_readable, @function\n"
         "hs_readable:\n"
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
         ".size hs_readable, . - hs_readable\n");
#else
/* No handler of ours sees faults there: the kernel is asked for each page. */
uint64_t
hs_readable (const void * from, uint64_t bytes, uint32_t tid)
{
  uint64_t at = 0;
  while (at < bytes && !hs_in_sandbox)
  {
    char byte;
    if (hs_read_memory (tid, &byte, (uint64_t) from + at, 1) != 1)
      return at;
    at = ((uint64_t) from + at) / 4096 * 4096 + 4096 - (uint64_t) from;
  }
  return bytes;
}
#endif
