/* The state of the x87 unit in memory has the address of its last instruction: the one of the program. */
#include <fenv.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static _Alignas(64) unsigned char area[4096];
/* Loads a number, saves the state by `how`, and takes the address of the load. */
#define SAVED(how, at, type)                                                                        \
    ({                                                                                             \
        uint64_t label, word = 0;                                                                  \
        memset(area, 0, sizeof area);                                                              \
        __asm__ volatile("1: fld1\n\t" how "\n\tfninit\n\tlea 1b(%%rip), %0"                        \
                         : "=r"(label), "+m"(area)                                                 \
                         : "a"(1), "d"(0), "r"(area)                                               \
                         : "memory");                                                              \
        memcpy(&word, area + (at), sizeof(type));                                                  \
        printf("%s: %s\n", #how, word == (type)label ? "the program's" : word ? "another" : "none"); \
    })

int main(void) {
    for (int i = 0; i < 3; i++) {
        SAVED("fnstenv %1", 12, uint32_t);
        SAVED("fnsave %1", 12, uint32_t);
        SAVED("fxsave %1", 8, uint32_t);
        SAVED("fxsave64 %1", 8, uint64_t);
        SAVED("fxsave64 (%4)", 8, uint64_t);
        SAVED("xsave %1", 8, uint32_t);
        SAVED("xsave64 %1", 8, uint64_t);
        SAVED("xsavec64 %1", 8, uint64_t);
        fenv_t held;
        feholdexcept(&held);
        volatile long double third = 1.0L / (3 + i);
        fesetenv(&held);
        printf("%.20Lf %d\n", third, fetestexcept(FE_INEXACT) != 0);
    }
    return 0;
}
