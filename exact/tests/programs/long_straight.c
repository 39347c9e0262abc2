/* 60,000 instructions one after the other, without a branch, each of which adds one to a number. */
#include <stdio.h>

volatile unsigned long number;

__attribute__((noinline)) void straight(void) {
    __asm__ volatile(".rept 60000\n\tincq %0\n\t.endr" : "+m"(number));
}

int main(void) {
    printf("%p %p\n", (void *)&number, (void *)straight);
    fflush(stdout);
    straight();
    return number != 60000;
}
