// Instructions that change registers alone, and that no translation holds. Each function returns its argument and one.
#include <stdio.h>

long by_far_return(long), by_interrupt_return(long), by_pop(long), by_move(long);

__asm__(
    ".text\n"
    "by_far_return:\n"
    "  lea 1(%rdi), %rax\n"
    "  mov %cs, %edx\n"
    "  push %rdx\n"
    "  push 8(%rsp)\n"
    "  lretq $8\n"
    // The carry comes from there.
    "by_interrupt_return:\n"
    "  mov %rdi, %rax\n"
    "  mov %rsp, %rsi\n"
    "  mov %ss, %edx\n"
    "  push %rdx\n"
    "  push %rsi\n"
    "  push $0x203\n"
    "  mov %cs, %edx\n"
    "  push %rdx\n"
    "  lea 1f(%rip), %rdx\n"
    "  push %rdx\n"
    "  iretq\n"
    "1: adc $0, %rax\n"
    "  ret\n"
    "by_pop:\n"
    "  lea 1(%rdi), %rax\n"
    "  push $0\n"
    "  pop %gs\n"
    "  ret\n"
    "by_move:\n"
    "  xor %eax, %eax\n"
    "  mov %eax, %gs\n"
    "  lea 1(%rdi), %rax\n"
    "  ret\n");

int main(void) {
  long sum = 0;
  for (int i = 0; i < 2000; i++) sum = by_move(by_pop(by_interrupt_return(by_far_return(sum))));
  printf("%ld\n", sum);
}
