// Code at fixed addresses that changes in ways other than by a store where it lies: `moved_code WAY COUNT`. A function of it returns a
// number that changes in each round, and is called in some of them only: otherwise it makes a system call.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BYTES = 8192, NUMBER = 31, BOTH = PROT_READ | PROT_WRITE, RUN = PROT_READ | PROT_EXEC, ALL = BOTH | PROT_EXEC };
typedef int (*function)(int);

// xor esi, esi; xor edx, edx; xor r8d, r8d; xor r9d, r9d; xor r10d, r10d; mov eax, SYS_getpid; syscall;
// test edi, edi; jne +6; mov eax, 1; ret; mov eax, NUMBER; ret
static const unsigned char code[] = {0x31, 0xf6, 0x31, 0xd2, 0x45, 0x31, 0xc0, 0x45, 0x31, 0xc9, 0x45, 0x31, 0xd2, 0xb8, 39, 0, 0, 0, 0x0f,
                                     0x05, 0x85, 0xff, 0x75, 0x06, 0xb8, 1, 0, 0, 0, 0xc3, 0xb8, 2, 0, 0, 0, 0xc3};

// Far from the blocks of threads, which calls may write to.
static unsigned char *place(void) {
  static unsigned long next = 0x600000000;
  return (unsigned char *)(next += 0x1000000);
}

static unsigned char *map(int protection, int file) {
  int flags = MAP_FIXED | (file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
  return mmap(place(), BYTES, protection, flags, file, 0);
}

static void rounds(volatile unsigned char *written, function run, int count) {
  for (int i = 1; i <= count; i++) {
    written[NUMBER] = i;
    int first = run(0);
    printf("%d %d\n", first, i % 5 == 4 ? run(1) : 0);
  }
}

int main(int argc, char **argv) {
  const char *way = argv[1];
  int count = atoi(argv[2]);
  int file = memfd_create("code", 0);
  if (ftruncate(file, BYTES) || pwrite(file, code, sizeof code, 0) < 0) return 1;
  if (!strcmp(way, "moved")) {
    unsigned char *first = map(ALL, -1), *hole = map(PROT_NONE, -1);
    memcpy(first, code, sizeof code);
    first = mremap(first, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, hole);
    rounds(first, (function)first, count);
  } else if (!strcmp(way, "twice")) {
    unsigned char *written = map(BOTH, file), *run = map(PROT_READ, file);
    mprotect(run, BYTES, RUN);
    rounds(written, (function)run, count);
  } else if (!strcmp(way, "again")) {
    unsigned char *written = map(BOTH, file);
    unsigned char *run = mremap(written, 0, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, place());
    mprotect(run, BYTES, RUN);
    rounds(written, (function)run, count);
  } else if (!strcmp(way, "part")) {
    unsigned char *part = map(BOTH, -1);
    memcpy(part, code, sizeof code);
    munmap(part + BYTES / 2, BYTES / 2);
    printf("%d\n", mprotect(part, BYTES, ALL));
    rounds(part, (function)part, count);
  } else if (!strcmp(way, "over")) {
    for (int i = 1; i <= count; i++) {
      unsigned char *old = map(BOTH, -1), *new = map(BOTH, -1);
      memcpy(old, code, sizeof code);
      memcpy(new, code, sizeof code);
      new[NUMBER] = i + 2;
      mprotect(old, BYTES, RUN);
      mprotect(new, BYTES, RUN);
      printf("%d %d ", ((function)old)(0), i % 2 ? ((function)old)(1) : 0);
      mremap(new, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, old);
      printf("%d\n", ((function)old)(1));
    }
  } else if (!strcmp(way, "sent")) {
    unsigned char *written = map(BOTH, file), *run = map(RUN, file);
    for (unsigned char i = 1; i <= count; i++) {
      printf("%d ", ((function)run)(0));
      struct iovec from = {&i, 1}, to = {written + NUMBER, 1};
      long sent = process_vm_writev(getpid(), &from, 1, &to, 1, 0);
      printf("%ld %d\n", sent, ((function)run)(1));
    }
  } else {
    return 2;
  }
}
