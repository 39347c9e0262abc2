/* Searches downwards for a byte that comes early, and compares downwards what differs early. */
#include <stdint.h>
#include <stdio.h>

uint8_t area[300], other[300];

int main(void) {
    for (int i = 0; i < 300; i++) area[i] = other[i] = i;
    other[270] = 77;
    uint8_t *at = area + 299, *second = other + 299;
    long count = 300;
    asm volatile("std\n repne scasb\n cld" : "+D"(at), "+c"(count) : "a"(250) : "memory", "cc");
    printf("%p %ld\n", (void *)area, count);
    at = area + 299;
    count = 300;
    asm volatile("std\n repe cmpsb\n cld" : "+S"(at), "+D"(second), "+c"(count) : : "memory", "cc");
    printf("%p %ld\n", (void *)other, count);
    return 0;
}
