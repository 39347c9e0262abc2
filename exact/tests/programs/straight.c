/* Many writes one after the other, without a branch: more than a block of translated code has instructions. */
#include <stdio.h>

#define W1(n) written[n] = (n) + 1;
#define W4(n) W1(n) W1((n) + 1) W1((n) + 2) W1((n) + 3)
#define W16(n) W4(n) W4((n) + 4) W4((n) + 8) W4((n) + 12)
#define W64(n) W16(n) W16((n) + 16) W16((n) + 32) W16((n) + 48)

volatile int written[128];

__attribute__((noinline)) void straight(void) {
    W64(0) W64(64)
}

int main(void) {
    printf("%p %p\n", (void *)written, (void *)straight);
    fflush(stdout);
    straight();
    return 0;
}
