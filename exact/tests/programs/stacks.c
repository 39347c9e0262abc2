// Calls on several stacks: coroutines whose stacks lie beside each other, a function called on a higher stack and on a lower one that
// `leave` comes back from, longjmp, and frames of a variable size. Prints where `twice` is, and how often it was called.
#define _GNU_SOURCE
#include <alloca.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline))
enum { TASKS = 4, BYTES = 16384 };

void change(void **from, void **to);
long on_stack(long (*function)(long), long argument, void *top);
asm("change: push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
    "mov %rsp, (%rdi); mov (%rsi), %rsp\n"
    "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp; ret\n"
    "on_stack: push %rbp; mov %rsp, %rbp; mov %rdi, %rax; mov %rsi, %rdi; mov %rdx, %rsp; call *%rax; leave; ret\n");

static void *own, *tasks[TASKS];
static int now, ended;
static long calls;
static jmp_buf away;

APART long twice(long x) { calls++; return 2 * x; }
APART static long some(long x) { return twice(x) + twice(x + 1); }
APART static long deep(long n) {
  if (n == 0) { change(&tasks[now], &own); return twice(7); }
  long sum = deep(n - 1) + twice(n);
  if (n % 2) change(&tasks[now], &own);
  return sum + some(n);
}
static void task(void) {
  for (int i = 0; i < 5; i++) deep(now + i);
  ended++;
  for (;;) change(&tasks[now], &own);
}
APART static long varied(long n) {
  char *bytes = alloca(n);
  memset(bytes, n, n);
  return some(bytes[n - 1]);
}
APART static void leave(long n) {
  if (n == 0) longjmp(away, 1);
  leave(n - 1);
  twice(n);
}

int main(void) {
  printf("%p\n", (void *)twice);
  char *area = malloc(TASKS * BYTES), *high = malloc(1 << 20), low[1 << 16];
  for (int i = 0; i < TASKS; i++) {
    void **stack = (void **)(area + (i + 1) * BYTES);
    stack[-2] = (void *)task;
    tasks[i] = stack - 8;
  }
  for (int round = 0; ended < TASKS; round++) {
    for (int i = 0; i < TASKS; i++) {
      now = round % 2 ? TASKS - 1 - i : i;
      twice(now);
      change(&own, &tasks[now]);
      some(now);
    }
  }
  for (long i = 0; i < 9; i++) {
    long (*function)(long) = i % 2 ? some : twice;
    on_stack(function, i, high + (1 << 20) - 64);
    on_stack(function, i, (void *)((uintptr_t)(low + sizeof low - 64) & -16ul));
    varied(100 + 30 * i);
    if (setjmp(away) == 0) leave(i);
    some(i);
  }
  printf("%ld\n", calls);
}
