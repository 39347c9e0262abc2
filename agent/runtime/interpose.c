/* Replacements for functions of other libraries. Each calls the original
 * through a pointer that the recorder fills in (to the displaced beginning of
 * the original).
 *
 * Rules of this file: errno and results are the original's; nothing is
 * recorded that did not happen.
 */
#include "runtime.h"

#include <signal.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unwind.h>

#define ORIGINAL(result, name, ...) result (* hs_original_##name) (__VA_ARGS__)

ORIGINAL (ssize_t, write, int, const void *, size_t);
ORIGINAL (ssize_t, writev, int, const struct iovec *, int);
ORIGINAL (pid_t, fork, void);
ORIGINAL (pid_t, vfork, void);
ORIGINAL (int, posix_spawn, pid_t *, const char *, const void *, const void *, char * const *, char * const *);
ORIGINAL (int, posix_spawnp, pid_t *, const char *, const void *, const void *, char * const *, char * const *);
ORIGINAL (int, execve, const char *, char * const *, char * const *);
ORIGINAL (int, execveat, int, const char *, char * const *, char * const *, int);
ORIGINAL (int, fexecve, int, char * const *, char * const *);
ORIGINAL (_Unwind_Reason_Code, _Unwind_Backtrace, _Unwind_Trace_Fn, void *);
ORIGINAL (void, _dl_debug_state, void);
ORIGINAL (int, pthread_setname_np, uintptr_t, const char *);
/* allowed.c */
extern long (* hs_original_syscall) (long, ...);
/* last.c */
extern int (* hs_original___libc_sigaction) (int, const struct sigaction *, struct sigaction *);
extern int (* hs_original_sigaltstack) (const stack_t *, stack_t *);
extern void (* hs_original__exit) (int);
extern void (* hs_original_abort) (void);
void hs_abort (void);
int hs_sigaction (int signal, const struct sigaction * new, struct sigaction * old);
int hs_sigaltstack (const stack_t * new, stack_t * old);
#ifdef HS_SELF_CONTAINED
/* own_image.c */
extern void * hs_original_dl_iterate_phdr, * hs_original__dl_find_object, * hs_original___stdio_write;
void hs_dl_iterate_phdr (void), hs_dl_find_object (void), hs_stdio_write (void);
/* allowed.c */
extern int * (* hs_original___errno_location) (void);
#endif
/* Of the same unwinder as the original: contexts differ between versions. */
ORIGINAL (uintptr_t, _Unwind_GetIP, struct _Unwind_Context *);

static int
is_output (int fd)
{
  return fd == 1 || fd == 2;
}

/* The output call that a thread is in. */
struct output_call
{
  uint64_t fd, argument, count; /* as in the registers of its system call; argument 0: in none */
  uint32_t is_vector;
};
#ifndef HS_SELF_CONTAINED
static __thread struct output_call output_call __attribute__ ((tls_model ("initial-exec")));

static struct output_call *
own_output_call (void)
{
  return &output_call;
}
#else
static struct output_call output_calls[HS_RINGS];

/* The thread's; NULL: it has no place of its own yet. */
static struct output_call *
own_output_call (void)
{
  const struct hs_local * local = hs_own_local ();
  return local != NULL ? &output_calls[local - hs_locals_begin] : NULL;
}
#endif

/* Returns the call that a handler's interrupts. */
static struct output_call
begin_output (int fd, const void * argument, uint64_t count, uint32_t is_vector)
{
  struct output_call * own = own_output_call ();
  struct output_call outer = { 0, 0, 0, 0 };
  if (own == NULL)
    return outer;
  outer = *own;
  *own = (struct output_call) { (uint64_t) fd, (uint64_t) argument, count, is_vector };
  __atomic_signal_fence (__ATOMIC_SEQ_CST);
  return outer;
}

static void
end_output (struct output_call outer)
{
  struct output_call * own = own_output_call ();
  __atomic_signal_fence (__ATOMIC_SEQ_CST);
  if (own != NULL)
    *own = outer;
}

static void
record_parts (int fd, const struct iovec * parts, int count, ssize_t left)
{
  for (int i = 0; i < count && left > 0; i++)
  {
    ssize_t length = (ssize_t) parts[i].iov_len < left ? (ssize_t) parts[i].iov_len : left;
    hs_record_output (fd, parts[i].iov_base, (uint64_t) length);
    left -= length;
  }
}

ssize_t
hs_write (int fd, const void * bytes, size_t length)
{
  struct output_call outer;
  ssize_t result;
  if (!is_output (fd))
    return hs_original_write (fd, bytes, length);
  outer = begin_output (fd, bytes, length, 0);
  result = hs_original_write (fd, bytes, length);
  end_output (outer);
  if (result > 0)
    hs_record_output (fd, bytes, (uint64_t) result);
  return result;
}

ssize_t
hs_writev (int fd, const struct iovec * parts, int count)
{
  struct output_call outer;
  ssize_t result;
  if (!is_output (fd))
    return hs_original_writev (fd, parts, count);
  outer = begin_output (fd, parts, (uint64_t) count, 1);
  result = hs_original_writev (fd, parts, count);
  end_output (outer);
  record_parts (fd, parts, count, result);
  return result;
}

/* A signal ends the program at the end of a system call, so an output call
 * does not return: records what it has written. */
void
hs_record_interrupted_output (uint64_t rip, uint64_t result, uint64_t rdi, uint64_t rsi, uint64_t rdx)
{
  struct output_call * own = own_output_call ();
  struct output_call call = own != NULL ? *own : (struct output_call) { 0, 0, 0, 0 };
  const uint8_t * instruction = (const uint8_t *) rip - 2;
  if (call.argument == 0 || (uint32_t) call.fd != (uint32_t) rdi || call.argument != rsi
      || call.count != rdx || (int64_t) result <= 0
      || instruction[0] != 0x0f || instruction[1] != 0x05) /* syscall */
    return;
  own->argument = 0;
  if (call.is_vector)
    record_parts ((int) rdi, (const struct iovec *) rsi, (int) rdx, (ssize_t) result);
  else
    hs_record_output ((int) rdi, (const char *) rsi, result);
}

/* A fork by the C library's function, or by `syscall` with its first six arguments. */
static long
forked (const long * call)
{
  int is_recorded = hs_alive == HS_MAGIC;
  if (is_recorded)
  {
    hs_note_reserved ();
    hs_is_sandboxed (); /* the child cannot ask */
  }
  long child = call == NULL ? hs_original_fork ()
                            : hs_original_syscall (call[0], call[1], call[2], call[3], call[4], call[5]);
  if (child == 0 && is_recorded)
    hs_lower_in_child ();
  if (child > 0)
    hs_record_fork ((int) child);
  return child;
}

pid_t
hs_fork (void)
{
  return (pid_t) forked (NULL);
}

/* `fork`, and `clone` and `clone3` without shared memory: the child has its own copy of our frame. */
long
hs_syscall_fork (long number, long a, long b, long c, long d, long e)
{
  const long call[] = { number, a, b, c, d, e };
  return forked (call);
}

/* Words of `struct clone_args`: flags, and the child's stack. */
#define CLONE_FLAGS 0
#define CLONE_STACK 5

/* Whether clone3 with these arguments makes a process with memory of its own, on a copy of this stack. */
int
hs_clones_process (size_t size, const uint64_t * arguments)
{
  /* In a sandbox it cannot be read with care. */
  const size_t read = (CLONE_STACK + 1) * sizeof (*arguments);
  return size >= read && !hs_is_sandboxed () && hs_readable (arguments, read) == read
         && (arguments[CLONE_FLAGS] & 0x100 /* CLONE_VM */) == 0 && arguments[CLONE_STACK] == 0;
}

static int
spawned (struct hs_local * local, int result, pid_t started, pid_t * child)
{
  hs_end_spawn (local, result == 0 ? started : 0);
  if (result == 0 && child != NULL)
    *child = started;
  return result;
}

/* `system` and `popen` call it too. */
static int
hs_posix_spawn (pid_t * child, const char * path, const void * actions, const void * attributes,
                char * const * argv, char * const * environment)
{
  pid_t started = 0;
  struct hs_local * local = hs_begin_spawn ();
  int result = hs_original_posix_spawn (&started, path, actions, attributes, argv, environment);
  return spawned (local, result, started, child);
}

static int
hs_posix_spawnp (pid_t * child, const char * file, const void * actions, const void * attributes,
                 char * const * argv, char * const * environment)
{
  pid_t started = 0;
  struct hs_local * local = hs_begin_spawn ();
  int result = hs_original_posix_spawnp (&started, file, actions, attributes, argv, environment);
  return spawned (local, result, started, child);
}

/* Recorded before, because success does not return, and again if it returns. */
static void
begin_exec (const char * path, struct hs_limits * found)
{
  hs_record_exec (path);
  hs_lower_limits (found);
}

static int
exec_failed (int result, const struct hs_limits * found)
{
  hs_put_limits_back (found);
  hs_record_exec_failed ();
  return result;
}

int
hs_execve (const char * path, char * const * argv, char * const * environment)
{
  struct hs_limits found;
  begin_exec (path, &found);
  return exec_failed (hs_original_execve (path, argv, environment), &found);
}

/* "/proc/self/fd/7/path", the name by which a file below an open one is reached. */
#define NAME_OF_OPEN "/proc/self/fd/"

static void
name_of_open (char * name, size_t size, int fd, const char * path)
{
  char digits[12];
  size_t length = sizeof (NAME_OF_OPEN) - 1, count = 0;
  unsigned number = (unsigned) fd;
  for (size_t n = 0; n != length; n++)
    name[n] = NAME_OF_OPEN[n];
  do
    digits[count++] = (char) ('0' + number % 10);
  while ((number /= 10) != 0);
  while (count != 0)
    name[length++] = digits[--count];
  if (path[0] != 0)
    name[length++] = '/';
  while (path[0] != 0 && length < size - 1)
    name[length++] = *path++;
  name[length] = 0;
}

static int
hs_execveat (int folder, const char * path, char * const * argv, char * const * environment, int flags)
{
  struct hs_limits found;
  char name[512];
  const char * shown = path;
  /* A negative folder is AT_FDCWD, or none. */
  if (path != NULL && path[0] != '/' && folder >= 0)
  {
    name_of_open (name, sizeof (name), folder, path);
    shown = name;
  }
  begin_exec (shown, &found);
  return exec_failed (hs_original_execveat (folder, path, argv, environment, flags), &found);
}

static int
hs_fexecve (int fd, char * const * argv, char * const * environment)
{
  struct hs_limits found;
  char name[32];
  name_of_open (name, sizeof (name), fd, "");
  begin_exec (name, &found);
  return exec_failed (hs_original_fexecve (fd, argv, environment), &found);
}

static int
hs_setname (uintptr_t thread, const char * name)
{
  int result = hs_original_pthread_setname_np (thread, name);
  if (result == 0 && thread == hs_thread_block ())
    hs_record_name (name);
  return result;
}

void
hs_dl_debug_state (void)
{
  hs_modules_changed ();
  hs_look_for_signals ();
  hs_original__dl_debug_state ();
}

/* Backtraces show the program's frames, not ours. */
struct filter
{
  _Unwind_Trace_Fn callback;
  void * argument;
};

static _Unwind_Reason_Code
skip_our_frames (struct _Unwind_Context * context, void * argument)
{
  struct filter * filter = argument;
  uintptr_t pc = hs_original__Unwind_GetIP (context);
  if (pc - hs_runtime.own_base < hs_runtime.own_size)
    return _URC_NO_REASON;
  return filter->callback (context, filter->argument);
}

_Unwind_Reason_Code
hs_unwind_backtrace (_Unwind_Trace_Fn callback, void * argument)
{
  struct filter filter = { callback, argument };
  return hs_original__Unwind_Backtrace (skip_our_frames, &filter);
}

extern int (* hs_original_prctl) (int, ...);
extern int (* hs_original_mlockall) (int);
void * hs_original_swapcontext, * hs_original_setcontext; /* thunks.S jumps there */
void * hs_original_clone;
void hs_swapcontext (void), hs_setcontext (void), hs_clone (void);
/* limits.c */
extern void * hs_original_setrlimit, * hs_original_getrlimit, * hs_original_prlimit;
void hs_setrlimit (void), hs_getrlimit (void), hs_prlimit (void);

#define REPLACED(name, by) { #name, (void *) by, (void **) &hs_original_##name }

/* Rows with the same original: the first function that a module has counts. */
#define OR_REPLACED(name, as, by) { #name, (void *) by, (void **) &hs_original_##as }

/* No functions have these names: code around `syscall` instructions, and where
 * the unwinder and longjmp leave frames, jumps here; V8 gets a pointer to the
 * last one. */
static void * hs_original_hs_before_syscall, * hs_original_hs_after_syscall;
static void * hs_original_hs_unwinder_leaves, * hs_original_hs_longjmp_leaves;
static void * hs_original_hs_longjmp_of_musl_leaves;
static void * hs_original_hs_return_address_at;

const struct hs_replacement hs_replacements[] = {
  REPLACED (hs_before_syscall, hs_before_syscall),
  REPLACED (hs_after_syscall, hs_after_syscall),
  REPLACED (hs_unwinder_leaves, hs_unwinder_leaves),
  REPLACED (hs_longjmp_leaves, hs_longjmp_leaves),
  REPLACED (hs_longjmp_of_musl_leaves, hs_longjmp_of_musl_leaves),
  REPLACED (hs_return_address_at, hs_return_address_at),
  REPLACED (write, hs_write),
  REPLACED (writev, hs_writev),
  REPLACED (fork, hs_fork),
  REPLACED (vfork, hs_vfork),
  REPLACED (posix_spawn, hs_posix_spawn),
  REPLACED (posix_spawnp, hs_posix_spawnp),
  REPLACED (execve, hs_execve),
  REPLACED (execveat, hs_execveat),
  REPLACED (fexecve, hs_fexecve),
  REPLACED (setrlimit, hs_setrlimit),
  REPLACED (getrlimit, hs_getrlimit),
  REPLACED (prlimit, hs_prlimit),
  REPLACED (pthread_setname_np, hs_setname),
  REPLACED (_dl_debug_state, hs_dl_debug_state),
  REPLACED (prctl, hs_prctl),
  REPLACED (mlockall, hs_mlockall),
  REPLACED (syscall, hs_syscall),
  REPLACED (swapcontext, hs_swapcontext),
  REPLACED (setcontext, hs_setcontext),
  REPLACED (clone, hs_clone),
  REPLACED (_Unwind_Backtrace, hs_unwind_backtrace),
  REPLACED (_Unwind_GetIP, NULL),
  REPLACED (abort, hs_abort),
  REPLACED (__libc_sigaction, hs_sigaction),
  REPLACED (sigaltstack, hs_sigaltstack),
#ifndef HS_SELF_CONTAINED
  REPLACED (_exit, hs_exit),
#else
  OR_REPLACED (_Exit, _exit, hs_exit), /* in musl's, _exit calls it */
  OR_REPLACED (sigaction, __libc_sigaction, hs_sigaction), /* musl's library names only this one */
  REPLACED (__errno_location, NULL),
  REPLACED (dl_iterate_phdr, hs_dl_iterate_phdr),
  REPLACED (_dl_find_object, hs_dl_find_object),
  REPLACED (__stdio_write, hs_stdio_write),
#endif
};
const unsigned hs_replacement_count =
    sizeof (hs_replacements) / sizeof (hs_replacements[0]);
