// Children that write to the memory that they share with their parent, and a posix_spawn that fails.
#define _GNU_SOURCE
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int global;
static char table[3 << 12];
extern char **environ;

int main(void) {
  char *block = calloc(1, 100000);
  for (int i = 0; i < 20; i++) {
    if (vfork() == 0) {
      global += i;
      table[(i * 700) % sizeof table] = 'a' + i;
      block[i * 4999] = 'A' + i;
      _exit(0);
    }
    while (wait(NULL) > 0) {
    }
  }
  long sum = 0;
  for (size_t i = 0; i < sizeof table; i++) sum += table[i];
  for (size_t i = 0; i < 100000; i++) sum += block[i];
  printf("%d %ld\n", global, sum);
  pid_t pid;
  char *words[] = {"/nowhere/at/all", NULL};
  int failed = posix_spawn(&pid, words[0], NULL, NULL, words, environ);
  printf("%s\n", strerror(failed));
  fflush(stdout);
  char *echo[] = {"/bin/echo", "from a child", NULL};
  failed = posix_spawn(&pid, echo[0], NULL, NULL, echo, environ);
  int status = 0;
  waitpid(pid, &status, 0);
  printf("%d %d\n", failed, status);
  for (volatile int i = 0; i < 5000; i++) {
  }
  return global & 127;
}
