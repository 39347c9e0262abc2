/* A division by zero that SSE was told to tell, and for which there is no handler. */
#include <stdio.h>
#include <xmmintrin.h>

int main(int count, char **words) {
    (void)words;
    volatile float zero = count - 1;
    _mm_setcsr(_mm_getcsr() & ~_MM_MASK_DIV_ZERO);
    volatile float quotient = 1.0f / zero;
    return quotient > 2;
}
