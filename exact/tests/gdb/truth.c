// Instructions of every kind that a translation treats in its own way, and some that it copies.
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile uint64_t sum;
static jmp_buf before;
static volatile sig_atomic_t caught;

static void handler(int number) {
  caught += number;
}

static uint64_t fib(uint64_t n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static uint64_t add(uint64_t a, uint64_t b) { return a + b; }
static uint64_t mix(uint64_t a, uint64_t b) { return (a << 7 | a >> 57) ^ b; }
static uint64_t twice(uint64_t a, uint64_t b) { return mix(add(a, b), b); }
static uint64_t (*const volatile choices[])(uint64_t, uint64_t) = {add, mix, twice};

static void strings(void) {
  char text[300], other[300];
  memset(text, 'a', sizeof text - 1);
  text[sizeof text - 1] = 0;
  text[170] = 'x';
  strcpy(other, text);
  memmove(other + 3, other, 200);
  sum += strlen(text) + (strchr(text, 'x') - text) + (uint64_t)strcmp(text, other) + (uint64_t)memcmp(text, other, 100);
  sum += strspn(text, "a") + (strstr(text, "ax") - text);
  snprintf(other, sizeof other, "%d %s %.6f %lx", 77, "text", sqrt(2.0 + sum % 3), sum);
  sum += strtoul(other, NULL, 10);
}

static void repeats(void) {
  char from[100], to[100];
  for (int i = 0; i < 100; i++) from[i] = (char)(i * 7);
  void *di = to, *si = from;
  uint64_t count = sizeof from;
  asm volatile("rep movsb" : "+D"(di), "+S"(si), "+c"(count)::"memory");
  di = to + 8, count = 9;
  asm volatile("rep stosq" : "+D"(di), "+c"(count) : "a"(0x1122334455667788) : "memory");
  di = to, si = from, count = 100;
  asm volatile("repe cmpsb" : "+D"(di), "+S"(si), "+c"(count)::"memory", "cc");
  sum += count;
  di = to, count = 100;
  asm volatile("repne scasb" : "+D"(di), "+c"(count) : "a"(0x55) : "memory", "cc");
  sum += count;
  di = to, count = 0;
  asm volatile("rep stosb" : "+D"(di), "+c"(count) : "a"(0) : "memory");
  di = to, si = from;
  asm volatile("movsq\n lodsb\n stosb" : "+D"(di), "+S"(si)::"rax", "memory");
  di = to + 99, si = from + 99, count = 50;
  asm volatile("std\n rep movsb\n cld" : "+D"(di), "+S"(si), "+c"(count)::"memory");
  for (int i = 0; i < 100; i++) sum += (uint64_t)to[i];
}

static void floats(void) {
  volatile long double value = 1.5L;
  for (int i = 1; i < 6; i++) value = value * 1.25L + i / 3.0L;
  long double root;
  asm volatile("fldpi\n fsin\n fldl2e\n faddp\n fsqrt" : "=t"(root));
  uint16_t control, status;
  asm volatile("fnstcw %0\n fnstsw %1" : "=m"(control), "=a"(status));
  uint16_t changed = control | 0xc00;
  asm volatile("fldcw %0\n fldt %2\n frndint\n fstpt %2\n fldcw %1" ::"m"(changed), "m"(control), "m"(value));
  sum += (uint64_t)(value + root) + control + status;
  volatile double x = 3.25, y = 0;
  for (int i = 0; i < 5; i++) y += exp(x / (i + 1)) * cos(y);
  sum += (uint64_t)y;
}

// Registers that the recorder uses for itself, in all positions that an instruction has.
#define REGISTER(number)                                                    \
  static void register_##number(void) {                                     \
    uint64_t array[4] = {5, 6, 7, 8}, result, other = 3;                    \
    asm volatile(                                                           \
        "mov %[array], %%r" #number "\n"                                    \
        "mov 8(%%r" #number "), %[result]\n"                                \
        "add %%r" #number ", 16(%%r" #number ")\n"                          \
        "xor %%r" #number ", 16(%%r" #number ")\n"                          \
        "push %%r" #number "\n"                                             \
        "xor %%r" #number "d, %%r" #number "d\n"                            \
        "1: inc %%r" #number "\n"                                           \
        "lea (%[result], %%r" #number ", 4), %[result]\n"                   \
        "cmp $9, %%r" #number "\n"                                          \
        "jb 1b\n"                                                           \
        "xchg %%r" #number ", (%%rsp)\n"                                    \
        "xchg %%r" #number ", (%%rsp)\n"                                    \
        "imul %%r" #number ", %[result]\n"                                  \
        "lea 2f(%%rip), %%r" #number "\n"                                   \
        "jmp *%%r" #number "\n"                                             \
        "ud2\n"                                                             \
        "2: lea 4f(%%rip), %%r" #number "\n"                                \
        "call *%%r" #number "\n"                                            \
        "lea 5f(%%rip), %%r" #number "\n"                                   \
        "push %%r" #number "\n"                                             \
        "mov %%rsp, %%r" #number "\n"                                       \
        "call *(%%r" #number ")\n"                                          \
        "pop %%r" #number "\n"                                              \
        "pop %%r" #number "\n"                                              \
        "bswap %%r" #number "\n"                                            \
        "mov %%r" #number "b, %%al\n"                                       \
        "test %%r" #number "b, %%r" #number "b\n"                           \
        "setnz %%r" #number "b\n"                                           \
        "add %%r" #number ", %[result]\n"                                   \
        "jmp 6f\n"                                                          \
        "4: add $1, %%r" #number "\n"                                       \
        "ret\n"                                                             \
        "5: sub $7, %[result]\n"                                            \
        "ret\n"                                                             \
        "6:\n"                                                              \
        : [result] "=&r"(result), "+r"(other)                               \
        : [array] "r"(array)                                                \
        : "r" #number, "rax", "memory", "cc");                              \
    sum += result + array[2];                                               \
  }
REGISTER(15)
REGISTER(11)
REGISTER(9)

static void odd_ones(void) {
  uint64_t count = 7, total = 0, flags, expected = 5, place = 5;
  asm volatile("1: add %%rcx, %1\n loop 1b" : "+c"(count), "+r"(total)::"cc");
  count = 4;
  asm volatile("1: sub $1, %1\n loopne 1b" : "+c"(count), "+r"(total)::"cc");
  count = 4;
  asm volatile("1: cmp %0, %0\n loope 1b" : "+c"(count)::"cc");
  asm volatile("xor %%ecx, %%ecx\n jrcxz 1f\n ud2\n 1: jecxz 2f\n ud2\n 2: inc %%rcx\n jrcxz 1b" ::: "rcx", "cc");
  asm volatile("stc\n pushfq\n pop %0\n push %0\n popfq\n adc $0, %1" : "=&r"(flags), "+r"(total)::"cc", "memory");
  sum += flags;
  asm volatile("pushfw\n popfw\n pushfq\n orq $0x40, (%%rsp)\n popfq\n pushfq\n pop %0" : "=&r"(flags)::"cc", "memory");
  sum += flags;
  asm volatile("lock cmpxchg %2, %0" : "+m"(place), "+a"(expected) : "r"(9ul) : "cc");
  asm volatile("lock cmpxchg %2, %0" : "+m"(place), "+a"(expected) : "r"(11ul) : "cc");
  asm volatile("lock xadd %1, %0\n xchg %1, %0" : "+m"(place), "+r"(total)::"cc");
  asm volatile("enter $64, $0\n mov %%rsp, %0\n leave" : "=&r"(total)::"memory");
  asm volatile("enter $32, $1\n leave" ::: "memory");
  asm volatile("call 1f\n 1: pop %0" : "=r"(total)::"memory");
  sum += total;
  asm volatile("call 1f\n jmp 2f\n 1: ret\n 2: pushq $0\n pushq $0\n call 3f\n jmp 4f\n 3: ret $16\n 4:" ::: "memory");
  asm volatile("cmc\n lahf\n sahf\n std\n cld\n bt $3, %0\n rcl $3, %0\n shld $5, %0, %1" : "+r"(total), "+r"(place)::"rax", "cc");
  asm volatile("push %%rsp\n pop %0" : "=r"(total)::"memory");
  asm volatile("lea 1f(%%rip), %%rax\n push %%rax\n jmp *(%%rsp)\n ud2\n 1: pop %%rax" ::: "rax", "memory");
  asm volatile("lea 1f(%%rip), %%rcx\n jmp *%%rcx\n ud2\n 1: mov %%rsp, %%rbx\n mov $2, %%eax\n xlatb" ::: "rax", "rbx", "rcx", "memory");
  asm volatile("mov $0, %%eax\n cpuid" ::: "rax", "rbx", "rcx", "rdx");
  asm volatile("mov %1, %%ax\n mul %%bl\n mov $100, %%ax\n mov $7, %%bl\n div %%bl" : "=m"(place) : "r"((uint16_t)3) : "rax", "rbx", "cc");
  sum += place + total;
}

static void jumps(void) {
  static volatile int round;
  round = 0;
  int came = setjmp(before);
  sum += (uint64_t)came;
  if (round++ < 3) longjmp(before, round);
}

static uint64_t vary(uint64_t state) {
  switch (state % 7) {
    case 0: return choices[state % 3](state, sum);
    case 1: strings(); return state * 3;
    case 2: repeats(); return state ^ sum;
    case 3: return fib(state % 9) + state;
    case 4: register_15(); register_11(); register_9(); return state + 1;
    case 5: odd_ones(); return state / 3;
    default: floats(); return state + 11;
  }
}

int main(void) {
  register_15();
  register_11(); register_9();
  odd_ones();
  repeats();
  floats();
  jumps();
  signal(SIGUSR1, handler);
  raise(SIGUSR1);
  sum += fib(8);
  strings();
  uint64_t state = 12345;
  for (int i = 0; i < 400; i++) {
    uint64_t place = state;
    state = choices[i % 3](state, place) + vary(state);
    void *block = malloc(state % 5000);
    if (block) memset(block, i, state % 5000);
    free(block);
    jumps();
  }
  raise(SIGUSR1);
  return caught == 2 * SIGUSR1 ? 0 : 1;
}
