/* A variable is written early, and again just before the end, after 150 million instructions that do not touch its page. */
#include <stdio.h>

_Alignas(4096) volatile int early;
_Alignas(4096) volatile unsigned long sum;

int main(void) {
    printf("%p\n", (void *)&early);
    fflush(stdout);
    early = 1;
    for (unsigned long i = 0; i < 30000000; i++)
        sum += i;
    early = 2;
    return 0;
}
