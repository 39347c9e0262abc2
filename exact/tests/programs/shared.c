// Memory that changes without a write to its address: `shared WHAT` prints what it has read.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*function)(int);

static char *map(int file, long size, int protection, int how, long offset) {
  char *at = mmap(NULL, size, protection, how, file, offset);
  if (at == MAP_FAILED) abort();
  return at;
}

static int memory(long size) {
  int file = memfd_create("shared", 0);
  if (ftruncate(file, size)) abort();
  return file;
}

// Code is written at one address and executed at another.
static void twice(int early) {
  int file = memory(8192);
  unsigned char code[] = {0x8d, 0x87, 0, 0, 0, 0, 0xc3};
  char *first = map(file, 4096, 3, MAP_SHARED, 4096);
  char *executed = map(file, 8192, 5, MAP_SHARED, 0);
  long sum = 0;
  for (int i = 0; i < 60; i++) {
    char *written = first;
    if (!early && i % 7 == 6) written = map(file, 8192, 3, MAP_SHARED, 0) + 4096;
    memcpy(code + 2, &i, 4);
    if (i % 5 == 4) {
      if (pwrite(file, code, sizeof code, 4096) != sizeof code) abort();
    } else {
      memcpy(written, code, sizeof code);
    }
    sum += ((function)(executed + 4096))(i);
    if (written != first) munmap(written - 4096, 8192);
  }
  printf("%ld\n", sum);
}

static void both(int file) {
  char read_back[8] = {0};
  char *first = map(file, 8192, 3, MAP_SHARED, 0);
  pwrite(file, "hello", 5, 0);
  printf("%s\n", first);
  strcpy(first, "HI");
  pread(file, read_back, 5, 0);
  printf("%s\n", read_back);
  char *second = map(file, 8192, 3, MAP_SHARED, 0);
  strcpy(second, "again");
  printf("%s\n", first);
  strcpy(first + 5000, "there");
  struct iovec parts[2] = {{"wri", 3}, {"tten", 5}};
  lseek(file, 100, SEEK_SET);
  writev(file, parts, 2);
  printf("%s %s %s\n", second, second + 5000, first + 100);
  second = mremap(second, 8192, 4096, 0);
  strcpy(second + 200, "moved");
  printf("%s\n", first + 200);
  ftruncate(file, 50);
  ftruncate(file, 8192);
  printf("[%s] [%s] [%s]\n", first, first + 100, first + 5000);
  munmap(first, 8192);
  munmap(second, 4096);
  first = map(file, 4096, 3, MAP_SHARED, 4096);
  printf("[%s] [%s]\n", first, first + 904);
}

static void private(void) {
  int file = memory(8192);
  char *own = map(file, 8192, 3, MAP_PRIVATE, 0);
  printf("[%s]\n", own);
  pwrite(file, "hello", 5, 0);
  printf("[%s]\n", own);
  own[100] = 1;
  pwrite(file, "world", 5, 0);
  pwrite(file, "there", 5, 4096);
  printf("[%s] [%s]\n", own, own + 4096);
}

// A child writes before its parent waits for it.
static void child(void) {
  char *common = map(-1, 8192, 3, MAP_SHARED | MAP_ANONYMOUS, 0);
  strcpy(common, "parent");
  if (!fork()) {
    strcpy(common + 4096, "child");
    _exit(0);
  }
  wait(NULL);
  printf("%s %s\n", common, common + 4096);
}

// A segment of System V is attached twice.
static void segment(void) {
  int number = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
  char *first = shmat(number, NULL, 0), *second = shmat(number, NULL, 0);
  shmctl(number, IPC_RMID, NULL);
  strcpy(first, "first");
  strcpy(second + 4096, "second");
  printf("%s %s\n", second, first + 4096);
  shmdt(second);
  strcpy(first, "third");
  printf("%s\n", first);
}

// Calls that fail when they have done a part.
static void parts(void) {
  char *at = map(-1, 16384, 3, MAP_PRIVATE | MAP_ANONYMOUS, 0);
  memset(at, 7, 16384);
  munmap(at + 8192, 4096);
  int failed = madvise(at, 16384, MADV_DONTNEED);
  printf("%d %d %d\n", failed, at[0], at[12288]);
  memset(at, 8, 8192);
  mlock(at + 4096, 4096);
  failed = madvise(at, 8192, MADV_DONTNEED);
  printf("%d %d %d\n", failed, at[0], at[4096]);
  failed = mprotect(at, 16384, PROT_READ | PROT_WRITE | PROT_EXEC);
  printf("%d", failed);
  unsigned char code[] = {0xb8, 0, 0, 0, 0, 0xc3};
  for (int i = 0; i < 4; i++) {
    code[1] = 50 + i;
    memcpy(at, code, sizeof code);
    printf(" %d", ((function)at)(0));
  }
  puts("");
}

// What is moved leaves empty memory, and shared memory is mapped once more.
static void moved(void) {
  char *at = map(-1, 16384, 3, MAP_PRIVATE | MAP_ANONYMOUS, 0);
  memset(at, 9, 16384);
  char *to = mremap(at, 16384, 16384, MREMAP_MAYMOVE | 4 /* MREMAP_DONTUNMAP */, NULL);
  if (to == MAP_FAILED) abort();
  printf("%d %d\n", to[0], at[0]);
  int failed = madvise(to, 16384, 24 /* MADV_DONTNEED_LOCKED */);
  printf("%d %d\n", failed, to[0]);
  char *common = map(-1, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, 0);
  common[5] = 5;
  char *again = mremap(common, 0, 4096, MREMAP_MAYMOVE);
  if (again == MAP_FAILED) abort();
  again[5]++;
  common[6] = 3;
  printf("%d %d\n", common[5], again[6]);
  common = map(-1, 8192, 3, MAP_SHARED | MAP_ANONYMOUS, 0);
  common[4096] = 1;
  again = mremap(common, 8192, 8192, MREMAP_MAYMOVE | 4 /* MREMAP_DONTUNMAP */, NULL);
  if (again == MAP_FAILED) abort();
  common[4096]++;
  if (again[4096] == 2) puts("written there");
  again[7] = 1;
  if (common[7]) puts("written here");
  munmap(common, 8192);
  again[8] = again[7];
  if (again[8]) puts("left there");
}

// Calls that drop nothing: shared memory lies elsewhere, and some memory is locked.
static void kept(void) {
  long size = 32 << 10, words = size / sizeof(long), state = 1, failed = 0;
  long *shared = (long *)map(-1, size, 3, MAP_SHARED | MAP_ANONYMOUS, 0);
  long *locked = (long *)map(-1, size, 3, MAP_PRIVATE | MAP_ANONYMOUS, 0);
  if (mlock(locked, size)) abort();
  for (int i = 0; i < 64; i++) {
    for (long at = 0; at < words; at++) {
      state = (state ^ state >> 27) * 0x5851f42d4c957f2d;
      shared[at] = locked[at] = state;
    }
    failed += madvise(shared, size, MADV_FREE);
    failed += madvise(shared, size, MADV_DONTNEED);
    failed += madvise(locked, size, MADV_DONTNEED);
  }
  printf("%ld %d\n", failed, !memcmp(shared, locked, size));
}

// The program's own memory is written by a file and by a call.
static void own(void) {
  static char text[32] = "nothing";
  int file = open("/proc/self/mem", O_RDWR);
  if (file < 0 || pwrite(file, "by a file", 10, (long)text) != 10) abort();
  if (text[3] == 'a') puts(text);
  lseek(file, (long)text + 5, SEEK_SET);
  if (write(file, "its file", 9) != 9) abort();
  if (text[5] == 'i') puts(text);
  char *common = map(memory(4096), 4096, 3, MAP_SHARED, 0);
  pwrite(file, "shared", 7, (long)common);
  if (common[0] == 's') puts(common);
  struct iovec from = {"by a call", 10}, to[2] = {{text, 4}, {text + 4, 6}};
  if (process_vm_writev(getpid(), &from, 1, to, 2, 0) != 10) abort();
  if (text[5] == 'c') puts(text);
}

// What is written to a file that is open for appending goes to its end, whatever place is named.
static void appended(int file) {
  fcntl(file, F_SETFL, O_APPEND);
  ftruncate(file, 4);
  char *at = map(file, 4096, 3, MAP_SHARED, 0);
  pwrite(file, "behind", 6, 0);
  if (at[0] == 0 && at[4] == 'b') puts(at + 4);
  write(file, " that", 5);
  if (at[11] == 't') puts(at + 4);
}

static volatile int beside_count;

static int counts(void *unused) {
  beside_count = 5;
  return 0;
}

// A process that shares all memory runs beside the program.
static void beside(void) {
  static char stack[65536];
  int child = clone(counts, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
  waitpid(child, NULL, 0);
  printf("%d\n", beside_count);
}

static void trap(int number) { write(1, "trap\n", 5); }

static void steps(void) {
  signal(SIGTRAP, trap);
  asm volatile("pushf; popf; pushf; orl $0x100, (%rsp); popf; nop; nop; pushf; andl $~0x100, (%rsp); popf");
}

int main(int argc, char **argv) {
  if (!strcmp(argv[1], "twice")) twice(1);
  if (!strcmp(argv[1], "late")) twice(0);
  if (!strcmp(argv[1], "memory")) both(memory(8192));
  if (!strcmp(argv[1], "private")) private();
  if (!strcmp(argv[1], "child")) child();
  if (!strcmp(argv[1], "segment")) segment();
  if (!strcmp(argv[1], "parts")) parts();
  if (!strcmp(argv[1], "moved")) moved();
  if (!strcmp(argv[1], "kept")) kept();
  if (!strcmp(argv[1], "own")) own();
  if (!strcmp(argv[1], "beside")) beside();
  if (!strcmp(argv[1], "steps")) steps();
  if (!strcmp(argv[1], "appended")) {
    char name[] = "/tmp/shared.XXXXXX";
    int file = mkstemp(name);
    unlink(name);
    appended(file);
  }
  if (!strcmp(argv[1], "file")) {
    char name[] = "/tmp/shared.XXXXXX";
    int file = mkstemp(name);
    unlink(name);
    ftruncate(file, 8192);
    both(file);
  }
  puts("end");
  return 5;
}
