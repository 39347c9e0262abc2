/* System calls of the program: one record when a thread makes one, one when it
 * returns. The recorder's jumps lead here from right before and right after
 * the `syscall` instructions, which stay in place.
 *
 * The rules of runtime.c hold. The targets of arguments are read by the kernel
 * (process_vm_readv), which reports unmapped memory: another thread may unmap
 * it at any time. Only what is on the thread's own stack is read directly. A
 * sandbox may forbid that; then only the arguments are recorded.
 */
#define _GNU_SOURCE
#include "runtime.h"
#include "system_call.h"

#include <sched.h>

/* Memory to read: `ARGUMENT` points to it. */
#define RULE_ARGUMENT 7      /* which one */
#define RULE_AT_RETURN 8     /* it is valid after the call returns without an error */
#define RULE_TEXT 0x10       /* up to a NUL */
#define RULE_COUNTED 0x20    /* as many bytes as the next argument says */
#define RULE_RESULT 0x30     /* as many bytes as the result says; the next argument is the room */
#define RULE_HOW 0x30        /* 0: as many bytes as the rule says */
#define RULE_BYTES_SHIFT 6   /* divided by 4; of counted ones, at most this many */

#define TEXT(argument) (argument | RULE_TEXT)
#define FIXED(argument, bytes) (argument | (bytes) / 4 << RULE_BYTES_SHIFT)
#define MADE(argument, bytes) (FIXED (argument, bytes) | RULE_AT_RETURN)
#define COUNTED(argument, most) (FIXED (argument, most) | RULE_COUNTED)
#define RESULT(argument, most) (MADE (argument, most) | RULE_RESULT)

#define RULES 4
/* Of a buffer's bytes. */
#define SHOWN 32
/* Of the elements of a vector, and of each text in one. */
#define VECTOR 32
#define VECTOR_TEXT 1024
/* Of the messages that one call sends or receives. */
#define MESSAGES_SHOWN 256
#define MESSAGE_BYTES 64 /* of a struct mmsghdr */
#define TEXT_PIECE 256
#define TEXTS_KEPT 2
#define TEXT_MAX 4096
#define PAGE 4096UL
#define ERRORS_FROM -4095L

/* Newer than the headers that some distributions have. */
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/* FSCONFIG_SET_BINARY of <linux/mount.h>, which older systems have without it. */
#define FSCONFIG_SET_BINARY_DATA 2

/* Rule 0 means no rule: it would be a text of no bytes. */
static const uint16_t rules[][RULES] = {
  [SYS_read] = { RESULT (1, SHOWN) },
  [SYS_write] = { COUNTED (1, SHOWN) },
  [SYS_open] = { TEXT (0) },
  [SYS_stat] = { TEXT (0), MADE (1, 144) },
  [SYS_fstat] = { MADE (1, 144) },
  [SYS_lstat] = { TEXT (0), MADE (1, 144) },
  [SYS_poll] = { FIXED (0, 32), MADE (0, 32) },
  [SYS_rt_sigaction] = { FIXED (1, 32), MADE (2, 32) },
  [SYS_rt_sigprocmask] = { FIXED (1, 8), MADE (2, 8) },
  [SYS_ioctl] = { FIXED (2, 4), MADE (2, 8) },
  [SYS_pread64] = { RESULT (1, SHOWN) },
  [SYS_pwrite64] = { COUNTED (1, SHOWN) },
  [SYS_access] = { TEXT (0) },
  [SYS_pipe] = { MADE (0, 8) },
  [SYS_nanosleep] = { FIXED (0, 16) },
  [SYS_getitimer] = { MADE (1, 32) },
  [SYS_setitimer] = { FIXED (1, 32), MADE (2, 32) },
  [SYS_connect] = { COUNTED (1, 112) },
  [SYS_accept] = { MADE (1, 28), FIXED (2, 4), MADE (2, 4) },
  [SYS_sendmsg] = { FIXED (1, 56) },
  [SYS_recvmsg] = { MADE (1, 56) },
  [SYS_sendto] = { COUNTED (1, SHOWN), COUNTED (4, 112) },
  [SYS_recvfrom] = { RESULT (1, SHOWN), MADE (4, 28), FIXED (5, 4), MADE (5, 4) },
  [SYS_bind] = { COUNTED (1, 112) },
  [SYS_getsockname] = { MADE (1, 28), FIXED (2, 4), MADE (2, 4) },
  [SYS_getpeername] = { MADE (1, 28), FIXED (2, 4), MADE (2, 4) },
  [SYS_socketpair] = { MADE (3, 8) },
  [SYS_setsockopt] = { COUNTED (3, SHOWN) },
  [SYS_getsockopt] = { MADE (3, 4), FIXED (4, 4), MADE (4, 4) },
  [SYS_execve] = { TEXT (0) },
  [SYS_wait4] = { MADE (1, 4) },
  [SYS_uname] = { MADE (0, 132) },
  [SYS_fcntl] = { FIXED (2, 32), MADE (2, 32) },
  [SYS_getcwd] = { RESULT (0, 1020) },
  [SYS_chdir] = { TEXT (0) },
  [SYS_rename] = { TEXT (0), TEXT (1) },
  [SYS_mkdir] = { TEXT (0) },
  [SYS_rmdir] = { TEXT (0) },
  [SYS_creat] = { TEXT (0) },
  [SYS_link] = { TEXT (0), TEXT (1) },
  [SYS_unlink] = { TEXT (0) },
  [SYS_symlink] = { TEXT (0), TEXT (1) },
  [SYS_readlink] = { TEXT (0), RESULT (1, 1020) },
  [SYS_chmod] = { TEXT (0) },
  [SYS_chown] = { TEXT (0) },
  [SYS_lchown] = { TEXT (0) },
  [SYS_gettimeofday] = { MADE (0, 16) },
  [SYS_truncate] = { TEXT (0) },
  [SYS_getresuid] = { MADE (0, 4), MADE (1, 4), MADE (2, 4) },
  [SYS_getresgid] = { MADE (0, 4), MADE (1, 4), MADE (2, 4) },
  [SYS_utime] = { TEXT (0) },
  [SYS_uselib] = { TEXT (0) },
  [SYS_statfs] = { TEXT (0) },
  [SYS_getrlimit] = { MADE (1, 16) },
  [SYS_getrusage] = { MADE (1, 32) },
  [SYS_sysinfo] = { MADE (0, 112) },
  [SYS_times] = { MADE (0, 32) },
  [SYS_rt_sigtimedwait] = { FIXED (0, 8), FIXED (2, 16) },
  [SYS_rt_sigsuspend] = { FIXED (0, 8) },
  [SYS_sigaltstack] = { FIXED (0, 24), MADE (1, 24) },
  [SYS_sched_setparam] = { FIXED (1, 4) },
  [SYS_sched_getparam] = { MADE (1, 4) },
  [SYS_sched_setscheduler] = { FIXED (2, 4) },
  [SYS_sched_rr_get_interval] = { MADE (1, 16) },
  [SYS_pivot_root] = { TEXT (0), TEXT (1) },
  [SYS_setrlimit] = { FIXED (1, 16) },
  [SYS_prctl] = { TEXT (1), MADE (1, 16) },
  [SYS_chroot] = { TEXT (0) },
  [SYS_mknod] = { TEXT (0) },
  [SYS_acct] = { TEXT (0) },
  [SYS_mount] = { TEXT (0), TEXT (1), TEXT (2), TEXT (4) },
  [SYS_umount2] = { TEXT (0) },
  [SYS_swapon] = { TEXT (0) },
  [SYS_swapoff] = { TEXT (0) },
  [SYS_sethostname] = { COUNTED (0, 64) },
  [SYS_setdomainname] = { COUNTED (0, 64) },
  [SYS_init_module] = { TEXT (2) },
  [SYS_delete_module] = { TEXT (0) },
  [SYS_quotactl] = { TEXT (1) },
  [SYS_lsetxattr] = { TEXT (0), TEXT (1), COUNTED (2, SHOWN) },
  [SYS_fsetxattr] = { TEXT (1), COUNTED (2, SHOWN) },
  [SYS_getxattr] = { TEXT (0), TEXT (1), RESULT (2, SHOWN) },
  [SYS_lgetxattr] = { TEXT (0), TEXT (1), RESULT (2, SHOWN) },
  [SYS_fgetxattr] = { TEXT (1), RESULT (2, SHOWN) },
  [SYS_setxattr] = { TEXT (0), TEXT (1), COUNTED (2, SHOWN) },
  [SYS_listxattr] = { TEXT (0), RESULT (1, SHOWN) },
  [SYS_llistxattr] = { TEXT (0), RESULT (1, SHOWN) },
  [SYS_flistxattr] = { RESULT (1, SHOWN) },
  [SYS_removexattr] = { TEXT (0), TEXT (1) },
  [SYS_lremovexattr] = { TEXT (0), TEXT (1) },
  [SYS_fremovexattr] = { TEXT (1) },
  [SYS_futex] = { FIXED (3, 16) },
  [SYS_io_getevents] = { FIXED (4, 16) },
  [SYS_semtimedop] = { FIXED (3, 16) },
  [SYS_timer_create] = { MADE (2, 4) },
  [SYS_timer_settime] = { FIXED (2, 32), MADE (3, 32) },
  [SYS_timer_gettime] = { MADE (1, 32) },
  [SYS_clock_settime] = { FIXED (1, 16) },
  [SYS_clock_gettime] = { MADE (1, 16) },
  [SYS_clock_getres] = { MADE (1, 16) },
  [SYS_clock_nanosleep] = { FIXED (2, 16) },
  [SYS_epoll_ctl] = { FIXED (3, 12) },
  [SYS_utimes] = { TEXT (0) },
  [SYS_mq_open] = { TEXT (0) },
  [SYS_mq_unlink] = { TEXT (0) },
  [SYS_mq_timedsend] = { COUNTED (1, SHOWN), FIXED (4, 16) },
  [SYS_mq_timedreceive] = { RESULT (1, SHOWN), MADE (3, 4), FIXED (4, 16) },
  [SYS_add_key] = { TEXT (0), TEXT (1), COUNTED (2, SHOWN) },
  [SYS_request_key] = { TEXT (0), TEXT (1), TEXT (2) },
  [SYS_futimesat] = { TEXT (1) },
  [SYS_signalfd] = { FIXED (1, 8) },
  [SYS_signalfd4] = { FIXED (1, 8) },
  [SYS_utimensat] = { TEXT (1), FIXED (2, 32) },
  [SYS_timerfd_settime] = { FIXED (2, 32), MADE (3, 32) },
  [SYS_timerfd_gettime] = { MADE (1, 32) },
  [SYS_openat] = { TEXT (1) },
  [SYS_mkdirat] = { TEXT (1) },
  [SYS_mknodat] = { TEXT (1) },
  [SYS_fchownat] = { TEXT (1) },
  [SYS_newfstatat] = { TEXT (1), MADE (2, 144) },
  [SYS_unlinkat] = { TEXT (1) },
  [SYS_renameat] = { TEXT (1), TEXT (3) },
  [SYS_linkat] = { TEXT (1), TEXT (3) },
  [SYS_symlinkat] = { TEXT (0), TEXT (2) },
  [SYS_readlinkat] = { TEXT (1), RESULT (2, 1020) },
  [SYS_fchmodat] = { TEXT (1) },
  [SYS_faccessat] = { TEXT (1) },
  [SYS_ppoll] = { FIXED (0, 32), FIXED (2, 16), FIXED (3, 8), MADE (0, 32) },
  [SYS_pipe2] = { MADE (0, 8) },
  [SYS_recvmmsg] = { FIXED (4, 16) },
  [SYS_fanotify_mark] = { TEXT (4) },
  [SYS_prlimit64] = { FIXED (2, 16), MADE (3, 16) },
  [SYS_accept4] = { MADE (1, 28), FIXED (2, 4), MADE (2, 4) },
  [SYS_inotify_add_watch] = { TEXT (1) },
  [SYS_name_to_handle_at] = { TEXT (1) },
  [SYS_finit_module] = { TEXT (1) },
  [SYS_renameat2] = { TEXT (1), TEXT (3) },
  [SYS_memfd_create] = { TEXT (0) },
  [SYS_execveat] = { TEXT (1) },
  [SYS_statx] = { TEXT (1), MADE (4, 64) },
  [SYS_open_tree] = { TEXT (1) },
  [SYS_move_mount] = { TEXT (1), TEXT (3) },
  [SYS_fsopen] = { TEXT (0) },
  [SYS_fsconfig] = { TEXT (2), TEXT (3) },
  [SYS_fspick] = { TEXT (1) },
  [SYS_clone3] = { FIXED (0, 64) },
  [SYS_faccessat2] = { TEXT (1) },
  [SYS_openat2] = { TEXT (1), FIXED (2, 24) },
  [SYS_epoll_pwait] = { FIXED (4, 8) },
  [SYS_epoll_pwait2] = { FIXED (3, 16), FIXED (4, 8) },
  [SYS_mount_setattr] = { TEXT (1) },
  [SYS_futex_waitv] = { FIXED (3, 16) },
  [SYS_fchmodat2] = { TEXT (1) },
};

/* Calls in progress: a handler that interrupts one makes others. */
#define CALLS_OPEN 32
struct open_calls
{
  uint64_t owner; /* of the ring: its thread and tenancy */
  uint32_t count;
  uint32_t borrowed; /* 1: a child of clone runs in the thread's place; 2: it may, permanently */
  struct
  {
    uint64_t stack; /* the stack pointer there */
    uint64_t number;
  } call[CALLS_OPEN];
};

_Static_assert (sizeof (struct open_calls) + sizeof (struct hs_frames) <= HS_FRAMES_BYTES, "open calls");

/* Returns the thread's, which follow its ring. */
static struct open_calls *
calls_of (struct hs_local * local)
{
  struct open_calls * calls = (struct open_calls *) (local->end + sizeof (struct hs_frames));
  uint64_t owner = (uint64_t) local->shared->tenancy << 32 | local->tid;
  if (calls->owner != owner)
  {
    calls->count = calls->borrowed = 0;
    calls->owner = owner;
  }
  return calls;
}

static int
is_on_main (const struct hs_local * local, uint64_t at)
{
  return at >= local->stack_low && at < local->stack_high;
}

/* The thread makes a call at `stack`. Calls further down on the same stack were
 * jumped out of. */
static void
open_call (const struct hs_local * local, struct open_calls * calls, uint64_t stack, uint64_t number)
{
  uint32_t count = calls->count;
  while (count != 0 && is_on_main (local, stack)
         && is_on_main (local, calls->call[count - 1].stack)
         && calls->call[count - 1].stack <= stack)
    count--;
  if (count >= CALLS_OPEN)
    count = 0;
  calls->call[count].stack = stack;
  calls->call[count].number = number;
  calls->count = count + 1;
}

/* Returns how many calls are open around the returning one; -1: none is at
 * this stack pointer. */
static int
find_call (const struct open_calls * calls, uint64_t stack)
{
  uint32_t count = calls->count <= CALLS_OPEN ? calls->count : 0;
  while (count != 0)
    if (calls->call[--count].stack == stack)
      return (int) count;
  return -1;
}

/* The bytes of a text with its NUL, or as many as are mapped, at most `most`. */
static uint64_t
text_bytes (const char * text, uint64_t most)
{
  for (uint64_t n = 0; n != most; n++)
    if (text[n] == 0)
      return n + 1;
  return most;
}

/* The same for a text that may not be mapped; the first bytes go to `piece`, if
 * there is one. */
static uint64_t
far_text_bytes (uint32_t tid, uint64_t at, char * piece)
{
  uint64_t length = 0, got;
  char more[64];
  do
  {
    int is_kept = length == 0 && piece != NULL;
    char * to = is_kept ? piece : more;
    uint64_t room = is_kept ? TEXT_PIECE : sizeof more;
    got = hs_read_memory (tid, to, at + length, room);
    uint64_t bytes = text_bytes (to, got);
    if (bytes != 0 && to[bytes - 1] == 0)
      return length + bytes;
    length += got;
    if (got != room)
      break;
  }
  while (length < TEXT_MAX);
  return length;
}

struct reading
{
  struct hs_local * local;
  uint64_t stack; /* the stack pointer at the call */
  unsigned count;
  struct hs_piece * piece; /* room for RULES, or for RULES and a vector */
  char text[TEXTS_KEPT][TEXT_PIECE]; /* the kernel reads further ones a second time */
  struct hs_kernel_sigaction action;
};

/* Chooses what is read for `rule`. */
static void
read_for (struct reading * reading, uint16_t rule, const uint64_t * arguments, uint64_t result)
{
  uint64_t at = arguments[rule & RULE_ARGUMENT];
  uint64_t bytes = (rule >> RULE_BYTES_SHIFT) * 4UL;
  struct hs_piece * piece = &reading->piece[reading->count];
  unsigned how = rule & RULE_HOW;
  if (rule == 0 || at < PAGE)
    return;
  uint64_t near = hs_own_stack_bytes (reading->local, reading->stack, at);
  piece->from = NULL;
  if ((how == RULE_COUNTED || how == RULE_RESULT) && arguments[(rule & RULE_ARGUMENT) + 1] < bytes)
    bytes = arguments[(rule & RULE_ARGUMENT) + 1];
  if (how == RULE_RESULT && result < bytes)
    bytes = result;
  if (how == RULE_TEXT && near != 0)
    bytes = text_bytes ((const char *) at, near < TEXT_MAX ? near : TEXT_MAX);
  else if (how == RULE_TEXT)
  {
    char * text = reading->count < TEXTS_KEPT ? reading->text[reading->count] : NULL;
    bytes = far_text_bytes (reading->local->tid, at, text);
    if (text != NULL && bytes <= TEXT_PIECE)
      piece->from = text;
  }
  if (bytes <= near)
    piece->from = (const void *) at;
  if (bytes == 0)
    return;
  piece->address = at;
  piece->bytes = bytes;
  reading->count++;
}

/* One end of a call, as it is recorded. */
struct call_end
{
  uint64_t number;
  uint64_t arguments[8]; /* the last two are 0 */
  uint64_t result;
  int at_return;
  uint64_t kind;
  const uint64_t * words;
  uint64_t word_count;
};

/* Replaces the action of rt_sigaction, which may be ours, by the program's. */
static void
show_action (struct reading * reading, const struct call_end * call)
{
  for (unsigned n = 0; n != reading->count; n++)
  {
    struct hs_piece * piece = &reading->piece[n];
    struct hs_kernel_sigaction * action = &reading->action;
    if (hs_read_memory (reading->local->tid, action, piece->address, sizeof *action) != sizeof *action)
      continue;
    hs_as_program_sees (call->arguments[0], action, call->at_return);
    piece->from = action;
  }
}

/* Returns the rule for a call, where it may depend on a command. */
static uint16_t
rule_of (const struct call_end * call, unsigned n)
{
  uint16_t rule = rules[call->number][n];
  int is_binary = call->number == SYS_fsconfig && (uint32_t) call->arguments[1] == FSCONFIG_SET_BINARY_DATA;
  return is_binary && rule == TEXT (3) ? COUNTED (3, SHOWN) : rule;
}

static void
read_all (struct reading * reading, const struct call_end * call)
{
  if (call->number >= sizeof rules / sizeof rules[0])
    return;
  for (unsigned n = 0; n != RULES; n++)
  {
    uint16_t rule = rule_of (call, n);
    if (!(rule & RULE_AT_RETURN) == !call->at_return)
      read_for (reading, rule, call->arguments, call->result);
  }
  if (call->number == SYS_rt_sigaction)
    show_action (reading, call);
}

/* What an argument's target points to itself. */
enum
{
  NO_VECTOR,
  TEXTS,   /* addresses of texts, then NULL */
  BUFFERS, /* addresses and lengths; the next argument is their number */
  MESSAGE, /* a struct msghdr: an address of a socket, and buffers */
  EVENTS,  /* events, as many as the result says */
  COUNTS,  /* a struct mmsghdr for each message: it ends with the count of bytes */
};

/* Returns which, and in `argument` whose. */
static int
vector_of (const struct call_end * call, unsigned * argument)
{
  *argument = call->number == SYS_execveat ? 2 : 1;
  switch (call->number)
  {
    case SYS_execve:
    case SYS_execveat:
      return call->at_return ? NO_VECTOR : TEXTS;
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_vmsplice:
      return call->at_return ? NO_VECTOR : BUFFERS;
    case SYS_readv:
    case SYS_preadv:
    case SYS_preadv2:
      return call->at_return ? BUFFERS : NO_VECTOR;
    case SYS_sendmsg:
      return call->at_return ? NO_VECTOR : MESSAGE;
    case SYS_recvmsg:
      return call->at_return ? MESSAGE : NO_VECTOR;
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
      return call->at_return ? EVENTS : NO_VECTOR;
    case SYS_sendmmsg:
    case SYS_recvmmsg:
      return call->at_return ? COUNTS : NO_VECTOR;
    default:
      return NO_VECTOR;
  }
}

static void
add_piece (struct reading * reading, uint64_t at, uint64_t bytes)
{
  struct hs_piece * piece = &reading->piece[reading->count];
  if (at < PAGE || bytes == 0)
    return;
  piece->address = at;
  piece->bytes = bytes;
  piece->from = NULL;
  reading->count++;
}

static void
read_texts (struct reading * reading, uint64_t at)
{
  uint64_t texts[VECTOR + 1];
  uint32_t tid = reading->local->tid;
  uint64_t got = hs_read_memory (tid, texts, at, sizeof texts) / 8, count = 0;
  while (count != got && texts[count] != 0)
    count++;
  add_piece (reading, at, 8 * (count < got ? count + 1 : count));
  for (uint64_t n = 0; n != count && n != VECTOR; n++)
  {
    uint64_t bytes = texts[n] < PAGE ? 0 : far_text_bytes (tid, texts[n], reading->text[1]);
    add_piece (reading, texts[n], bytes < VECTOR_TEXT ? bytes : VECTOR_TEXT);
  }
}

static void
read_buffers (struct reading * reading, uint64_t at, uint64_t count, uint64_t filled)
{
  uint64_t buffers[2 * VECTOR];
  if (count > VECTOR)
    count = VECTOR;
  count = hs_read_memory (reading->local->tid, buffers, at, 16 * count) / 16;
  add_piece (reading, at, 16 * count);
  for (uint64_t n = 0; n != count; n++)
  {
    uint64_t bytes = buffers[2 * n + 1];
    if (bytes > filled)
      bytes = filled;
    filled -= bytes;
    add_piece (reading, buffers[2 * n], bytes < SHOWN ? bytes : SHOWN);
  }
}

/* Records a call with a vector: apart, because this needs more stack. */
static __attribute__ ((noinline)) void
record_vector (struct reading * reading, const struct call_end * call, int vector, unsigned argument)
{
  struct hs_piece piece[RULES + 1 + 1 + VECTOR];
  uint64_t header[7]; /* a struct msghdr */
  uint64_t at = call->arguments[argument], filled = call->at_return ? call->result : UINT64_MAX;
  reading->piece = piece;
  read_all (reading, call);
  if (at < PAGE)
    vector = NO_VECTOR;
  if (vector == TEXTS)
    read_texts (reading, at);
  else if (vector == BUFFERS)
    read_buffers (reading, at, call->arguments[argument + 1], filled);
  else if (vector == EVENTS)
    add_piece (reading, at, 12 * (filled < SHOWN ? filled : SHOWN));
  else if (vector == COUNTS)
    add_piece (reading, at, MESSAGE_BYTES * (filled < MESSAGES_SHOWN ? filled : MESSAGES_SHOWN));
  else if (vector == MESSAGE && hs_read_memory (reading->local->tid, header, at, sizeof header) == sizeof header)
  {
    uint64_t bytes = header[1] & UINT32_MAX;
    add_piece (reading, header[0], bytes < 112 ? bytes : 112);
    if (header[2] >= PAGE)
      read_buffers (reading, header[2], header[3], filled);
  }
  hs_record_pieces (reading->local, call->kind, call->words, call->word_count, piece, reading->count);
}

/* Records one end of a call with the memory that its rules choose. */
static void
record_end (struct hs_local * local, uint64_t stack, const struct call_end * call)
{
  struct reading reading;
  unsigned argument;
  reading.local = local;
  reading.stack = stack;
  reading.count = 0;
  /* A call that has failed has written nothing. */
  int is_read = !hs_in_sandbox && (!call->at_return || call->result < (uint64_t) ERRORS_FROM);
  int vector = is_read ? vector_of (call, &argument) : NO_VECTOR;
  if (vector != NO_VECTOR)
    return record_vector (&reading, call, vector, argument);
  struct hs_piece piece[RULES];
  reading.piece = piece;
  if (is_read)
    read_all (&reading, call);
  hs_record_pieces (local, call->kind, call->words, call->word_count, piece, reading.count);
}

/* Will a child of this call run in the thread's place, with its stack and
 * thread-local storage? 1: until the call returns; 2: it may at any time. */
static uint32_t
lends_thread (struct hs_local * local, const struct hs_saved_call * saved)
{
  uint64_t flags = saved->rdi;
  if (saved->rax == SYS_clone3
      && (hs_in_sandbox || hs_read_memory (local->tid, &flags, saved->rdi, 8) != 8))
    flags = 0;
  else if (saved->rax != SYS_clone && saved->rax != SYS_clone3)
    return saved->rax == SYS_vfork;
  if (!(flags & CLONE_VM) || (flags & CLONE_SETTLS))
    return 0;
  return flags & CLONE_VFORK ? 1 : 2;
}

static int
makes_child (uint64_t number)
{
  return number == SYS_clone || number == SYS_clone3 || number == SYS_fork || number == SYS_vfork;
}

__attribute__ ((used)) void
hs_call_begins (struct hs_saved_call * saved)
{
  if (hs_alive != HS_MAGIC)
    return;
  uint64_t stack = (uint64_t) saved + HS_SAVED_CALL_BYTES;
  struct hs_local * local = hs_local_or_register ();
  struct open_calls * calls;
  if (local == NULL || (calls = calls_of (local))->borrowed)
    return;
  const uint64_t words[] = {
    saved->rax, saved->rdi, saved->rsi, saved->rdx, saved->r10, saved->r8, saved->r9,
    saved->return_address, stack,
  };
  calls->borrowed = lends_thread (local, saved);
  open_call (local, calls, stack, saved->rax);
  const struct call_end call = {
    .number = saved->rax,
    .arguments = { saved->rdi, saved->rsi, saved->rdx, saved->r10, saved->r8, saved->r9 },
    .kind = HS_SYSCALL | HS_SYSCALL_BEGINS << 4,
    .words = words,
    .word_count = sizeof words / 8,
  };
  record_end (local, stack, &call);
}

__attribute__ ((used)) void
hs_call_ends (struct hs_saved_call * saved)
{
  if (hs_alive != HS_MAGIC)
    return;
  uint64_t stack = (uint64_t) saved + HS_SAVED_CALL_BYTES;
  struct hs_local * local = hs_own_local ();
  if (local == NULL || local->off || local->vfork || local->shared == NULL)
    return;
  struct open_calls * calls = calls_of (local);
  int found = find_call (calls, stack);
  if (found < 0)
    return;
  uint64_t number = calls->call[found].number;
  if (makes_child (number))
  {
    if (saved->rax == 0)
      return;
    if (calls->borrowed == 1)
      calls->borrowed = 0;
  }
  if (calls->borrowed == 1)
    return;
  calls->count = (uint32_t) found;
  const uint64_t words[] = { saved->rax, stack };
  const struct call_end call = {
    .number = number,
    .arguments = { saved->rdi, saved->rsi, saved->rdx, saved->r10, saved->r8, saved->r9 },
    .result = saved->rax,
    .at_return = 1,
    .kind = HS_SYSCALL | HS_SYSCALL_ENDS << 4,
    .words = words,
    .word_count = sizeof words / 8,
  };
  record_end (local, stack, &call);
}
