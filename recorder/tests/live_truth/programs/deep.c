/* A stack that is deeper than what is kept of it, and all registers with values of their own. */
#include <stdio.h>

#define WORDS 64

/* Gives every register a value that is told by its number, but rsp, rip and the segments; returns behind the breakpoint.  */
void everything (void);
extern char here[];
__asm__ (
    ".text\n"
    ".globl everything\n"
    ".type everything, @function\n"
    "everything:\n"
    ".cfi_startproc\n"
    "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset rbx, 0\n"
    "push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset rbp, 0\n"
    "push %r12\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset r12, 0\n"
    "push %r13\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset r13, 0\n"
    "push %r14\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset r14, 0\n"
    "push %r15\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset r15, 0\n"
    "lea vectors(%rip), %rax\n"
    "movdqu 0(%rax), %xmm0\n"
    "movdqu 16(%rax), %xmm1\n"
    "movdqu 32(%rax), %xmm2\n"
    "movdqu 48(%rax), %xmm3\n"
    "movdqu 64(%rax), %xmm4\n"
    "movdqu 80(%rax), %xmm5\n"
    "movdqu 96(%rax), %xmm6\n"
    "movdqu 112(%rax), %xmm7\n"
    "movdqu 128(%rax), %xmm8\n"
    "movdqu 144(%rax), %xmm9\n"
    "movdqu 160(%rax), %xmm10\n"
    "movdqu 176(%rax), %xmm11\n"
    "movdqu 192(%rax), %xmm12\n"
    "movdqu 208(%rax), %xmm13\n"
    "movdqu 224(%rax), %xmm14\n"
    "movdqu 240(%rax), %xmm15\n"
    "movabs $0x0000111122223333, %rax\n"
    "movabs $0x0101111122223333, %rdx\n"
    "movabs $0x0202111122223333, %rcx\n"
    "movabs $0x0303111122223333, %rbx\n"
    "movabs $0x0404111122223333, %rsi\n"
    "movabs $0x0505111122223333, %rdi\n"
    "movabs $0x0606111122223333, %rbp\n"
    "movabs $0x0808111122223333, %r8\n"
    "movabs $0x0909111122223333, %r9\n"
    "movabs $0x0a0a111122223333, %r10\n"
    "movabs $0x0b0b111122223333, %r11\n"
    "movabs $0x0c0c111122223333, %r12\n"
    "movabs $0x0d0d111122223333, %r13\n"
    "movabs $0x0e0e111122223333, %r14\n"
    "movabs $0x0f0f111122223333, %r15\n"
    "std\n"
    "stc\n"
    ".globl here\n"
    "here:\n"
    "nop\n"
    "cld\n"
    "pop %r15\n.cfi_adjust_cfa_offset -8\n"
    "pop %r14\n.cfi_adjust_cfa_offset -8\n"
    "pop %r13\n.cfi_adjust_cfa_offset -8\n"
    "pop %r12\n.cfi_adjust_cfa_offset -8\n"
    "pop %rbp\n.cfi_adjust_cfa_offset -8\n"
    "pop %rbx\n.cfi_adjust_cfa_offset -8\n"
    "ret\n"
    ".cfi_endproc\n"
    ".size everything, .-everything\n");

unsigned char vectors[256];

__attribute__ ((noinline)) long
dig (int depth)
{
  volatile long words[WORDS];
  for (int i = 0; i < WORDS; i++)
    words[i] = depth * 1000L + i;
  if (depth == 0)
    everything ();
  else
    words[0] += dig (depth - 1);
  return words[depth % WORDS] + words[0];
}

int
main (void)
{
  for (int i = 0; i < 256; i++)
    vectors[i] = i;
  long sum = dig (1);
  sum += dig (300);
  printf ("%ld\n", sum);
}
