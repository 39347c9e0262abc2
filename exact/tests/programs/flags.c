/* Instructions that could write flags, and do not: at the beginning of a block, so that nothing else has written them in it. */
#include <stdio.h>

/* A shift by 0 or 1 of 1, with the carry set before: it stays set if nothing is shifted. */
__attribute__((noinline, naked)) static long keeps(long count) {
    __asm__("mov %rdi, %rcx\n mov $1, %eax\n stc\n jmp 1f\n 1: shl %cl, %eax\n jc 2f\n xor %eax, %eax\n ret\n 2: ret");
}

/* Strings of no bytes are the same. */
__attribute__((noinline, naked)) static long same(const char *a, const char *b, long count) {
    __asm__("mov %rdx, %rcx\n cmp %eax, %eax\n jmp 1f\n 1: repe cmpsb\n jne 2f\n mov $1, %eax\n ret\n 2: xor %eax, %eax\n ret");
}

int main(void) {
    long sum = 0;
    for (int i = 0; i < 1000; i++)
        sum += keeps(i & 1) * 3 + same("a", "b", i & 3 ? 0 : 1);
    printf("%ld\n", sum);
    return 0;
}
