/*
 * The program that the tests of stopping a process stop. Its first argument says what it does; see `modes` at the end.
 * Each mode ends when standard input does, and says on standard output what it saw, as lines `key=value`.
 * Build: cc -O1 -g -pthread target.c -o target
 */

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MILLISECOND 1000000L

static atomic_int finished;
static atomic_long counter;
static atomic_long failures;
static atomic_long rounds;

static void
fail (const char * what, long result)
{
  if (atomic_fetch_add (&failures, 1) < 10)
    dprintf (1, "bad=%s %ld errno %d\n", what, result, errno);
}

static long
now_ns (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}

static pthread_t
start (void * (* run) (void *))
{
  pthread_t thread;
  int error;
  /* While another thread execs, the kernel says EAGAIN. */
  do
    error = pthread_create (&thread, NULL, run, NULL);
  while (error == EAGAIN);
  if (error != 0)
  {
    errno = error;
    fail ("pthread_create", error);
    abort ();
  }
  return thread;
}

static void
block_signals (int how)
{
  sigset_t all;
  sigfillset (&all);
  pthread_sigmask (how, &all, NULL);
}

static void
read_until_end (void)
{
  char byte;
  while (read (0, &byte, 1) == 1)
    ;
}

static void *
spin (void * unused)
{
  while (!atomic_load (&finished))
    atomic_fetch_add (&counter, 1);
  return unused;
}

/* Threads that block every signal: none of their calls may end early or fail. */

static void *
sleep_often (void * unused)
{
  struct timespec wait = { 0, MILLISECOND };
  for (; !atomic_load (&finished); atomic_fetch_add (&rounds, 1))
  {
    long begin = now_ns ();
    if (nanosleep (&wait, NULL) != 0)
      fail ("nanosleep", -1);
    if (now_ns () - begin < MILLISECOND)
      fail ("nanosleep was short", now_ns () - begin);
  }
  return unused;
}

static void *
poll_often (void * unused)
{
  int fds[2];
  if (pipe (fds) != 0)
    abort ();
  struct pollfd nothing = { fds[0], POLLIN, 0 };
  for (; !atomic_load (&finished); atomic_fetch_add (&rounds, 1))
  {
    int ready = poll (&nothing, 1, 1);
    if (ready != 0)
      fail ("poll", ready);
  }
  return unused;
}

static void *
epoll_often (void * unused)
{
  int set = epoll_create1 (0);
  struct epoll_event event;
  for (; !atomic_load (&finished); atomic_fetch_add (&rounds, 1))
  {
    int ready = epoll_wait (set, &event, 1, 1);
    if (ready != 0)
      fail ("epoll_wait", ready);
  }
  return unused;
}

static void *
wait_for_signal_often (void * unused)
{
  sigset_t never;
  struct timespec wait = { 0, MILLISECOND };
  sigemptyset (&never);
  sigaddset (&never, SIGUSR2);
  for (; !atomic_load (&finished); atomic_fetch_add (&rounds, 1))
  {
    int signal = sigtimedwait (&never, NULL, &wait);
    if (signal != -1 || errno != EAGAIN)
      fail ("sigtimedwait", signal);
  }
  return unused;
}

static void *
receive_often (void * unused)
{
  int pair[2];
  char byte;
  struct timeval wait = { 0, 1000 };
  if (socketpair (AF_UNIX, SOCK_STREAM, 0, pair) != 0)
    abort ();
  setsockopt (pair[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof (wait));
  for (; !atomic_load (&finished); atomic_fetch_add (&rounds, 1))
  {
    long got = recv (pair[0], &byte, 1, 0);
    if (got != -1 || errno != EAGAIN)
      fail ("recv", got);
  }
  return unused;
}

static void *
wait_for_semaphore_often (void * unused)
{
  int set = semget (IPC_PRIVATE, 1, 0600);
  struct sembuf take = { 0, -1, 0 };
  struct timespec wait = { 0, MILLISECOND };
  for (; !atomic_load (&finished); atomic_fetch_add (&rounds, 1))
  {
    int taken = semtimedop (set, &take, 1, &wait);
    if (taken != -1 || errno != EAGAIN)
      fail ("semtimedop", taken);
  }
  semctl (set, 0, IPC_RMID);
  return unused;
}

static int there[2], back[2];

static void *
answer (void * unused)
{
  char byte;
  while (read (there[0], &byte, 1) == 1)
    if (write (back[1], &byte, 1) != 1)
      fail ("write back", -1);
  return unused;
}

static void *
ask (void * unused)
{
  char byte = 0, got = 0;
  for (; !atomic_load (&finished); atomic_fetch_add (&rounds, 1), byte++)
    if (write (there[1], &byte, 1) != 1 || read (back[0], &got, 1) != 1 || got != byte)
      fail ("ping", got);
  close (there[1]);
  return unused;
}

static void *
nothing (void * unused)
{
  atomic_fetch_add (&counter, 1);
  return unused;
}

static void *
create_often (void * unused)
{
  for (; !atomic_load (&finished); atomic_fetch_add (&rounds, 1))
  {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
      threads[i] = start (nothing);
    for (int i = 0; i < 3; i++)
      if (pthread_join (threads[i], NULL) != 0)
        fail ("join", i);
  }
  return unused;
}

/* The main thread counts signals. */

static atomic_long alarms_set, alarms, usr1, queued, out_of_order, handled;

static void
set_alarm (void)
{
  struct itimerval once = { { 0, 0 }, { 0, 300 } };
  atomic_fetch_add (&alarms_set, 1);
  setitimer (ITIMER_REAL, &once, NULL);
}

static void
on_alarm (int signal)
{
  (void) signal;
  atomic_fetch_add (&handled, 1);
  atomic_fetch_add (&alarms, 1);
  if (!atomic_load (&finished))
    set_alarm ();
}

static void
on_usr1 (int signal)
{
  (void) signal;
  atomic_fetch_add (&handled, 1);
  atomic_fetch_add (&usr1, 1);
  if (write (1, "u", 1) != 1)
    abort ();
}

static void
on_queued (int signal, siginfo_t * info, void * context)
{
  (void) signal;
  (void) context;
  atomic_fetch_add (&handled, 1);
  if (info->si_value.sival_int != atomic_fetch_add (&queued, 1) || info->si_code != SI_QUEUE)
    atomic_fetch_add (&out_of_order, 1);
}

static void
handle (int signal, void * handler, int flags)
{
  struct sigaction action;
  memset (&action, 0, sizeof (action));
  action.sa_flags = flags;
  action.sa_sigaction = (void (*) (int, siginfo_t *, void *)) handler;
  sigaction (signal, &action, NULL);
}

static void
read_between_signals (void)
{
  char byte;
  for (;;)
  {
    long before = atomic_load (&handled);
    long got = read (0, &byte, 1);
    if (got == 0)
      return;
    if (got == -1 && (errno != EINTR || atomic_load (&handled) == before))
      fail ("read", got);
  }
}

static int
count_signals (void)
{
  void * (* work[]) (void *) = { spin, sleep_often, poll_often, epoll_often, wait_for_signal_often, receive_often,
      wait_for_semaphore_often, answer, ask, create_often };
  enum { N = sizeof (work) / sizeof (work[0]) };
  pthread_t threads[N];
  if (pipe (there) != 0 || pipe (back) != 0)
    abort ();
  handle (SIGALRM, (void *) on_alarm, 0);
  handle (SIGUSR1, (void *) on_usr1, 0);
  handle (SIGRTMIN, (void *) on_queued, SA_SIGINFO);
  block_signals (SIG_BLOCK);
  for (int i = 0; i < N; i++)
    threads[i] = start (work[i]);
  block_signals (SIG_UNBLOCK);
  printf ("counter=%p\n", (void *) &counter);
  fflush (stdout);
  set_alarm ();
  read_between_signals ();
  atomic_store (&finished, 1);
  for (int i = 0; i < N; i++)
    pthread_join (threads[i], NULL);
  for (long end = now_ns () + 60000 * MILLISECOND; alarms != alarms_set && now_ns () < end;)
    sched_yield ();
  printf ("\nalarms_set=%ld\nalarms=%ld\nusr1=%ld\nqueued=%ld\nout_of_order=%ld\nfailures=%ld\nrounds=%ld\n",
      alarms_set, alarms, usr1, queued, out_of_order, failures, rounds);
  return 0;
}

/* Threads that compute; and the main thread waits, or is gone. */

static int
compute (void)
{
  for (int i = 0; i < 3; i++)
    start (spin);
  printf ("counter=%p\n", (void *) &counter);
  fflush (stdout);
  read_until_end ();
  return 6;
}

static void *
exit_at_end (void * unused)
{
  read_until_end ();
  exit (5);
  return unused;
}

static int
lose_leader (void)
{
  start (exit_at_end);
  start (spin);
  printf ("counter=%p\n", (void *) &counter);
  fflush (stdout);
  pthread_exit (NULL);
}

/* A thread that is not the leader replaces the program. */

static void *
replace (void * unused)
{
  execl ("/proc/self/exe", "target", "seven", NULL);
  fail ("exec", -1);
  abort ();
  return unused;
}

static int
exec_from_thread (void)
{
  start (spin);
  start (create_often);
  printf ("counter=%p\n", (void *) &counter);
  fflush (stdout);
  start (replace);
  for (;;)
    pause ();
  return 1;
}

static int
seven (void)
{
  return 7;
}

/* The main thread cannot be stopped while its vfork child reads. */

static int
wait_for_vfork (void)
{
  start (spin);
  printf ("counter=%p\n", (void *) &counter);
  fflush (stdout);
  if (vfork () == 0)
  {
    char byte;
    while (syscall (SYS_read, 0, &byte, 1) == 1)
      ;
    _exit (0);
  }
  return 4;
}

/* Code that is changed, or that a thread is moved out of. */

__attribute__ ((noinline, noclone)) static int
constant (void)
{
  int value;
  __asm__ volatile ("movl $41, %0" : "=r" (value));
  return value;
}

static int
call_constant (void)
{
  printf ("constant=%p\n", (void *) constant);
  fflush (stdout);
  read_until_end ();
  return constant ();
}

extern char spin_here[], go_here[], read_here[], read_there[];

static int
spin_until_moved (void)
{
  printf ("go_here=%p\n", (void *) go_here);
  fflush (stdout);
  __asm__ volatile (
      "spin_here: jmp spin_here\n"
      "go_here: nop\n");
  return 8;
}

/* The loop is interrupted by a signal whose handler waits for a byte, on this stack or another. */

static void
wait_for_byte (int signal)
{
  char byte;
  (void) signal;
  dprintf (1, "handler=%p\n", (void *) &byte);
  if (read (0, &byte, 1) != 1)
    _exit (9);
}

static int
spin_with_handler (void)
{
  handle (SIGUSR1, (void *) wait_for_byte, 0);
  return spin_until_moved ();
}

static int
spin_with_handler_elsewhere (void)
{
  static char other[65536];
  stack_t stack = { .ss_sp = other, .ss_size = sizeof (other) };
  sigaltstack (&stack, NULL);
  handle (SIGUSR1, (void *) wait_for_byte, SA_ONSTACK);
  return spin_until_moved ();
}

/* Two copies of a blocking read; which one returned? */

static int
read_twice (void)
{
  long which, got;
  char byte;
  printf ("read_here=%p\nread_there=%p\n", (void *) read_here, (void *) read_there);
  fflush (stdout);
  __asm__ volatile (
      "syscall\n"
      "read_here: movl $1, %%edi\n"
      "jmp 1f\n"
      "syscall\n"
      "read_there: movl $2, %%edi\n"
      "1:\n"
      : "=a" (got), "=D" (which)
      : "a" (SYS_read), "D" (0L), "S" (&byte), "d" (1L)
      : "rcx", "r11", "memory");
  return got == 1 ? (int) which : 9;
}

static int
sleep_threads (void)
{
  for (int i = 0; i < 200; i++)
    start (i % 2 ? sleep_often : poll_often);
  printf ("counter=%p\n", (void *) &counter);
  fflush (stdout);
  read_until_end ();
  return failures != 0;
}

static const struct
{
  const char * name;
  int (* run) (void);
} modes[] = {
  { "signals", count_signals },
  { "compute", compute },
  { "lose-leader", lose_leader },
  { "exec", exec_from_thread },
  { "seven", seven },
  { "vfork", wait_for_vfork },
  { "constant", call_constant },
  { "spin", spin_until_moved },
  { "handler", spin_with_handler },
  { "handler-elsewhere", spin_with_handler_elsewhere },
  { "read", read_twice },
  { "threads", sleep_threads },
};

int
main (int argc, char ** argv)
{
  for (size_t i = 0; argc == 2 && i < sizeof (modes) / sizeof (modes[0]); i++)
    if (strcmp (argv[1], modes[i].name) == 0)
      return modes[i].run ();
  return 2;
}
