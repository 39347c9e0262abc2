/* Calls `stop_here`, where a debugger reads the stack, in many ways. */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

volatile int sink;
static volatile int compared;
static jmp_buf out;

__attribute__((noinline)) void
stop_here (int n)
{
  sink = n;
  __asm__ volatile ("" ::: "memory");
}

static __attribute__((noinline)) int
recurse (int n)
{
  if (n == 0)
    {
      stop_here (1);
      return 1;
    }
  return n * recurse (n - 1) + sink;
}

static inline __attribute__((always_inline)) int
inner (int n)
{
  stop_here (n);
  return n + sink;
}

static inline __attribute__((always_inline)) int
outer (int n)
{
  return inner (n + 1)
    * 2;
}

static __attribute__((noinline)) int
calls_inlined (int n)
{
  int before = sink;
  return outer (n) + before;
}

static int
compare (const void * a, const void * b)
{
  int x = *(const int *) a, y = *(const int *) b;
  if (!compared)
    {
      compared = 1;
      stop_here (3);
    }
  return x - y;
}

static __attribute__((noinline)) int
sorts (void)
{
  int list[] = { 3, 1, 2, 9, 5 };
  qsort (list, 5, sizeof list[0], compare);
  return list[sink & 1];
}

static void
handler (int number)
{
  stop_here (number);
}

static __attribute__((noinline)) int
signals (void)
{
  signal (SIGUSR1, handler);
  raise (SIGUSR1);
  return sink;
}

static void
trapped (int number, siginfo_t * info, void * context)
{
  ucontext_t * at = context;
  (void) info;
  stop_here (number);
  /* ud2 has two bytes. */
  at->uc_mcontext.gregs[REG_RIP] += 2;
}

static __attribute__((noinline)) int
traps (int n)
{
  static char stack[1 << 16];
  stack_t other = { .ss_sp = stack, .ss_size = sizeof stack };
  struct sigaction action = { .sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_ONSTACK };
  sigaltstack (&other, NULL);
  sigaction (SIGILL, &action, NULL);
  n += sink;
  __asm__ volatile ("ud2");
  return n + sink;
}

static __attribute__((noinline)) int
tail_target (int n)
{
  stop_here (n);
  return n + sink;
}

static __attribute__((noinline)) int
tail_caller (int n)
{
  sink = n;
  return tail_target (n + 1);
}

static __attribute__((noinline, noreturn)) void
leaves (int n)
{
  stop_here (n);
  longjmp (out, 1);
}

static __attribute__((noinline)) void
calls_noreturn (int n)
{
  if (n)
    leaves (n);
  sink = 0;
}

static __attribute__((noinline)) int
with_alloca (int n)
{
  char * p = alloca (n);
  memset (p, n, n);
  stop_here (n);
  return p[n / 2];
}

static void *
thread (void * argument)
{
  stop_here (*(int *) argument);
  return NULL;
}

static __attribute__((noinline)) void
with_thread (void)
{
  pthread_t id;
  int n = 11;
  pthread_create (&id, NULL, thread, &n);
  pthread_join (id, NULL);
}

static __attribute__((noinline)) int
loops (int n)
{
  int sum = 0;
  for (int i = 0; i < n; i++)
    {
      int square = i * i;

      /* no code here */
      sum += square ^ sink; sum -= i & sink;
    }
  return sum;
}

int
main (void)
{
  recurse (3);
  calls_inlined (1);
  sorts ();
  signals ();
  traps (1);
  tail_caller (4);
  if (setjmp (out) == 0)
    calls_noreturn (6);
  with_alloca (200);
  with_thread ();
  return loops (sink) == -1;
}
