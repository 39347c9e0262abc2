// Code that shares its page with data, or that writes over itself: `own_code WHAT COUNT` prints what it has computed.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*function)(int);

static unsigned char *page;

// inc dword ptr [rip+0x100]; mov eax, [rip+0xfa]; ret
static const unsigned char counts[] = {0xff, 0x05, 0, 1, 0, 0, 0x8b, 0x05, 0xfa, 0, 0, 0, 0xc3};
// mov eax, 1; movb $42, 1(%rip), which is in the next one; mov eax, 1; ret
static const unsigned char changes[] = {0xb8, 1, 0, 0, 0, 0xc6, 0x05, 1, 0, 0, 0, 42, 0xb8, 1, 0, 0, 0, 0xc3};
// mov ecx, edi; mov al, 0x90; lea rdi, [rip+3]; rep stosb; ud2; mov eax, 7; ret: what it fills with nop begins at ud2
static const unsigned char fills[] = {0x89, 0xf9, 0xb0, 0x90, 0x48, 0x8d, 0x3d, 2, 0, 0, 0, 0xf3, 0xaa, 0x0f, 0x0b, 0xb8, 7, 0, 0, 0, 0xc3};
// lea eax, [rdi+COUNT]; ret
static const unsigned char adds[] = {0x8d, 0x87, 0, 0, 0, 0, 0xc3};

static int call(int argument) { return ((function)page)(argument); }

static int data(int count) {
  int last = 0;
  memcpy(page, counts, sizeof counts);
  for (int i = 0; i < count; i++) last = call(0);
  return last;
}

static int itself(int at, int count) {
  int sum = 0;
  unsigned char *start = page;
  page += at;
  for (int i = 0; i < count; i++) {
    memcpy(page, changes, sizeof changes);
    page[11] = i;
    sum += call(0);
  }
  page = start;
  return sum;
}

static int filled(int count) {
  int sum = 0;
  for (int i = 0; i < count; i++) {
    memcpy(page, fills, sizeof fills);
    sum += call(2);
  }
  return sum;
}

// The kernel writes beside code, and over it.
static int kernel(int count) {
  int sum = 0, ends[2];
  pipe(ends);
  for (int i = 0; i < count; i++) {
    unsigned char code[sizeof adds];
    memcpy(code, adds, sizeof code);
    code[2] = i;
    write(ends[1], code, sizeof code);
    if (read(ends[0], page, sizeof code) != sizeof code) abort();
    sum += call(i);
    write(ends[1], &i, sizeof i);
    if (read(ends[0], page + 2048, sizeof i) != sizeof i) abort();
    sum += page[2048] + call(0);
  }
  return sum;
}

static volatile int came;
static void handler(int number) { came += call(number); }

// The frames of a handler lie on a stack that has code, too.
static int frames(int count) {
  stack_t stack = {.ss_sp = page, .ss_size = 1 << 16};
  sigaltstack(&stack, NULL);
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &action, NULL);
  unsigned char *start = page;
  page += (1 << 16) - 64;
  memcpy(page, adds, sizeof adds);
  for (int i = 0; i < count; i++) {
    call(1);
    raise(SIGUSR1);
  }
  page = start;
  return came;
}

static int wanted;
static void *calls(void *nothing) {
  long sum = 0;
  for (int i = 0; i < wanted; i++) sum += call(0) > 0;
  return (void *)sum;
}

static int threads(int count) {
  pthread_t all[3];
  long sum = 0;
  wanted = count;
  memcpy(page, counts, sizeof counts);
  page[0x106] = 0;
  for (int i = 0; i < 3; i++) pthread_create(&all[i], NULL, calls, NULL);
  for (int i = 0; i < 3; i++) {
    void *result;
    pthread_join(all[i], &result);
    sum += (long)result;
  }
  return sum;
}

// A write that meets memory which is not there has its fault, though the code that it would change too may be changed.
static int faulted(int count) {
  struct sigaction action = {.sa_handler = SIG_DFL};
  sigaction(SIGSEGV, &action, NULL);
  memcpy(page, adds, sizeof adds);
  call(1);
  munmap(page + 4096, 4096);
  fflush(stdout);
  *(volatile long *)(page + 4092) = 0;
  return count;
}

// A child of fork has code and data in one page, too.
static int forked(int count) {
  int status;
  memcpy(page, counts, sizeof counts);
  call(0);
  if (!fork()) _exit(data(count) & 0xff);
  wait(&status);
  return status + call(0);
}

int main(int argc, char **argv) {
  int count = atoi(argv[2]), result = -1;
  page = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!strcmp(argv[1], "data")) result = data(count);
  if (!strcmp(argv[1], "itself")) result = itself(0, count);
  if (!strcmp(argv[1], "border")) result = itself(4090, count);
  if (!strcmp(argv[1], "filled")) result = filled(count);
  if (!strcmp(argv[1], "kernel")) result = kernel(count);
  if (!strcmp(argv[1], "frames")) result = frames(count);
  if (!strcmp(argv[1], "threads")) result = threads(count);
  if (!strcmp(argv[1], "faulted")) result = faulted(count);
  if (!strcmp(argv[1], "forked")) result = forked(count);
  printf("%s %d\n", argv[1], result);
  return 3;
}
