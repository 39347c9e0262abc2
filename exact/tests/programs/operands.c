/* Instructions that use memory in unusual ways: masks, vectors of addresses, bits that lie far away, the processor's state. */
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint8_t area[8192] __attribute__((aligned(64)));
static uint32_t numbers[256];
static uint64_t sum;

static void plain(void) {
    static uint64_t wide[2] __attribute__((aligned(16))) = {1, 2};
    uint64_t other = 5;
    asm volatile("xlatb" : "+a"(other) : "b"(area + 100));
    asm volatile("btsq %1, (%0)" ::"r"(numbers + 8), "r"((int64_t)-77) : "memory", "cc");
    asm volatile("btcl %1, (%0)" ::"r"(numbers + 8), "r"(1000) : "memory", "cc");
    asm volatile("btrw %w1, (%0)" ::"r"(numbers + 8), "r"(-33) : "memory", "cc");
    for (int same = 0; same < 2; same++) {
        uint64_t low = 1, high = 2;
        asm volatile("lock cmpxchg16b (%2)" : "+a"(low), "+d"(high) : "r"(wide), "b"(7L), "c"(8L) : "memory", "cc");
    }
    asm volatile("lock xaddl %k0, (%1)" : "+r"(other) : "r"(numbers + 3) : "memory", "cc");
    asm volatile("xchgw %w0, (%1)" : "+r"(other) : "r"(numbers + 4) : "memory");
    asm volatile("leaq -128(%%rsp), %%rsp\n pushq (%0)\n popq 8(%%rsp)\n pushfq\n popfq\n pushq (%0)\n popq (%0)\n leaq 128(%%rsp), %%rsp" ::"r"(wide) : "memory", "cc");
    asm volatile("movq %0, %%r11\n movq $3, %%r10\n addl $7, 4(%%r11,%%r10,4)\n leaq -128(%%rsp), %%rsp\n pushq 8(%%r11)\n popq (%%r11,%%r10,8)\n leaq 128(%%rsp), %%rsp\n"
                 "movq %0, %%r9\n fnstenv 64(%%r9)\n fldenv 64(%%r9)\n fldpi\n fstpt 130(%%r9)\n movdqu 1(%%r9), %%xmm1\n movdqu %%xmm1, 3(%%r9)" ::"r"(numbers)
                 : "r9", "r10", "r11", "xmm1", "memory", "cc");
    asm volatile("movq %0, %%r15\n addl $3, (%%r15)\n xorl %%eax, 8(%%r15)\n movl $2, %%r15d\n incl (%0,%%r15,4)\n addl $1, numbers(,%%r15,8)" ::"r"(numbers), "a"(1) : "r15", "memory", "cc");
}

static void frames(void) {
    asm volatile("leaq -128(%%rsp), %%rsp\n enter $32, $0\n leave\n enter $16, $2\n leave\n leaq 128(%%rsp), %%rsp" ::: "memory");
    asm volatile("fxsave (%0)\n fxrstor (%0)" ::"r"(area + 512) : "memory");
    asm volatile("movdqa (%0), %%xmm1\n movq %1, %%rdi\n maskmovdqu %%xmm1, %%xmm1" ::"r"(area + 256), "r"(area + 3) : "rdi", "xmm1", "memory");
}

static void state(void) {
    memset(area + 1024, 0, 4096);
    asm volatile("xsave (%0)\n xrstor (%0)" ::"r"(area + 1024), "a"(0xffu), "d"(0) : "memory");
    asm volatile("xsavec (%0)\n xrstor (%0)" ::"r"(area + 1024), "a"(0xe6u), "d"(0) : "memory");
    asm volatile("xsaveopt (%0)" ::"r"(area + 1024), "a"(0x7u), "d"(0) : "memory");
}

__attribute__((target("avx2"))) static void masks(void) {
    __m256i mask = _mm256_setr_epi32(-1, 0, -1, -1, 0, 0, 0, -1), index = _mm256_setr_epi32(3, 1, 77, 5, 9, 200, 11, 12);
    __m256i found = _mm256_mask_i32gather_epi32(mask, (const int *)numbers, index, mask, 4);
    _mm256_maskstore_epi32((int *)area, mask, found);
    found = _mm256_add_epi32(found, _mm256_maskload_epi32((const int *)(area + 8), mask));
    _mm256_storeu_si256((__m256i *)(area + 77), found);
    __m128i four = _mm256_i64gather_epi32((const int *)numbers, _mm256_setr_epi64x(1, 2, 3, 250), 4);
    _mm_storeu_si128((__m128i *)(area + 201), four);
}

__attribute__((target("avx512f,avx512bw,avx512vl"))) static void wide(void) {
    __m512i value = _mm512_set1_epi32(0x01020304), index = _mm512_setr_epi32(1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 4, 6, 7, 250);
    _mm512_mask_storeu_epi32(numbers + 1, 0x5a31, value);
    _mm512_mask_i32scatter_epi32(numbers, 0x7f0f, index, value, 4);
    value = _mm512_mask_i32gather_epi32(value, 0x0ff1, index, numbers, 4);
    _mm512_mask_compressstoreu_epi32(area + 300, 0x1248, value);
    value = _mm512_mask_expandloadu_epi32(value, 0x8421, area + 301);
    _mm512_mask_storeu_epi8(area + 400, 0xf00ff00f12345678, value);
    value = _mm512_maskz_loadu_epi8(0xffff0000ff, area + 8192 - 40);
    _mm512_mask_cvtepi32_storeu_epi8(area + 500, 0x00ff, value);
    value = _mm512_mask_add_epi32(value, 0x3, value, _mm512_set1_epi32((int)numbers[7]));
    _mm512_storeu_si512(area + 601, value);
    _mm512_store_si512(area + 704, _mm512_xor_si512(value, _mm512_loadu_si512(area + 11)));
    sum += (uint64_t)_mm512_mask_cmpeq_epi8_mask(0xff00ff00ff00ff00, value, _mm512_loadu_si512(area));
}

int main(void) {
    for (unsigned at = 0; at < sizeof area; at++)
        area[at] = (uint8_t)(at * 131 >> 3);
    for (unsigned at = 0; at < 256; at++)
        numbers[at] = at * 2654435761u;
    for (int round = 0; round < 3; round++) {
        plain();
        frames();
        if (__builtin_cpu_supports("avx2"))
            masks(), state();
        if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
            wide();
    }
    for (unsigned at = 0; at < sizeof area; at++)
        sum = sum * 31 + area[at];
    printf("%lx\n", sum);
    return 0;
}
