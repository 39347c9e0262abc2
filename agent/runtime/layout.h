/* What the runtime (in the target) and the recorder (outside) agree on: the
 * shared memory and the records. Mirrors: agent/src/shared.rs (memory),
 * store/src/wire.rs (records); norm: docs/wire.md. Included by C and by
 * assembler, so it holds only #defines above the __ASSEMBLER__ line.
 */
#ifndef HS_LAYOUT_H
#define HS_LAYOUT_H

#define HS_MAGIC 0x314d4853444e4948 /* "HINDSHM1" */

/* Kinds of records: word 1, bits 0..3. Bits 4..7: number of xmm words. */
#define HS_ENTER 1
#define HS_ENTER_TAIL 2
#define HS_LEAVE 3
#define HS_THREAD 4
#define HS_OUTPUT 5
#define HS_THREAD_EXIT 6
#define HS_GAP 7
#define HS_ENTER_NOLEAVE 8
#define HS_FORK 9
#define HS_EXEC 10
#define HS_LOGPOINT 11
#define HS_CONDITION_ERROR 12
#define HS_CAPTURE 13
#define HS_THREAD_NAME 14
#define HS_ENTER_ONLY 15
#define HS_SYSCALL 0
/* In place of its number of xmm words: */
#define HS_SYSCALL_BEGINS 1
#define HS_SYSCALL_ENDS 2

#define HS_ENTER_BYTES 72
#define HS_LEAVE_BYTES 32

/* Word 1 of these two: bits 8..35 the probe, from bit HS_LOG_COUNT_SHIFT the
 * number of words that follow. Code that the recorder makes writes them. */
#define HS_LOG_COUNT_SHIFT 36
#define HS_LOG_MAX_VALUES 64
#define HS_LOG_BYTES 16
#define HS_CONDITION_ERROR_BYTES 24

/* What a CAPTURE record keeps, and bits of what to capture. */
#define HS_CAPTURE_REGISTERS 1
#define HS_CAPTURE_TEXTS 2
#define HS_CAPTURE_POINTEES 4
#define HS_CAPTURE_WORDS 16       /* general registers, by their DWARF numbers */
#define HS_CAPTURE_STACK_MAX 16384
#define HS_CAPTURE_TEXT_MAX 256
#define HS_WATCH_WORDS 384
#define HS_FOREIGN 19

/* The head of a watched value: bits 0..7 the number of steps, from these bits
 * on what its address is counted from and the function it belongs to. */
#define HS_WATCH_STEPS_MASK 0xff
#define HS_WATCH_BASE_SHIFT 8      /* 8 bits: 0 nothing; else 1 + DWARF number of a register */
#define HS_WATCH_FUNCTION_SHIFT 16 /* 0: every enter and leave; else 1 + function: its enters */
#define HS_WATCH_FUNCTION_MASK 0x1fffffff
#define HS_WATCH_THREAD_BASE 59    /* 1 + fs_base: the address is counted from the thread pointer */
/* Of what a caller has, a mask: captured where the return address of what is
 * entered or left is from the first of two more words to before the second. */
#define HS_WATCH_CALLER_SHIFT 62
#define HS_WATCH_CALLER_ENTER 1
#define HS_WATCH_CALLER_LEAVE 2

/* Its last word: how many bytes, and these bits. */
#define HS_WATCH_BYTES_MASK 0xffff
#define HS_WATCH_PARTLY 0x10000    /* as many of them as there are */
#define HS_WATCH_TEXT 0x20000      /* up to a NUL */

/* How many bytes behind an argument are captured; with this bit at the return
 * only. */
#define HS_POINTEE_BYTES_MASK 0x3fff
#define HS_POINTEE_TEXT 0x4000
#define HS_POINTEE_RESULT 0x8000

/* In the length of a section: its address is the thread pointer. */
#define HS_SECTION_THREAD 0x8000000000000000

/* Where an argument's text is: how to get from its register to it. */
#define HS_TEXT_TERMINATED 1      /* the register has its address; up to a NUL */
#define HS_TEXT_SLICE 2           /* the register has its address, the next one its length */
#define HS_TEXT_VIEW 3            /* the register has its length, the next one its address */
#define HS_TEXT_BEHIND 0x10       /* the register has the address of words: */
#define HS_TEXT_ADDRESS_SHIFT 2   /* which of them is the text's address (2 bits) */
#define HS_TEXT_LENGTH_MASK 3     /* which of them is its length */

#define HS_GAP_FULL 1
#define HS_GAP_NO_RING 2
#define HS_GAP_FORBIDDEN 4 /* 3: a reader's; the number of records is 0, not known */

/* The shadow of a stack slot is at its address with this bit turned over. */
#define HS_SHADOW_BIT 46

#define HS_RINGS 4096
#define HS_RING_BYTES (8 << 20)
/* Shared memory: the control page, the ring headers, the rings. */
#define HS_DATA_OFFSET (4096 + HS_RINGS * 128)
/* Behind the rings: the counters of code that judges, then what such code asks. */
#define HS_COUNTERS_OFFSET (HS_DATA_OFFSET + HS_RINGS * (HS_RING_BYTES + 0UL))
#define HS_COUNTERS_BYTES (8 << 20)
#define HS_ASKS_OFFSET (HS_COUNTERS_OFFSET + HS_COUNTERS_BYTES)

/* Threads that can ask at the same time, and what they show of their stacks. */
#define HS_ASKS 64
#define HS_ASK_STACK_BYTES 1536

/* States of a question. */
#define HS_ASK_FREE 0
#define HS_ASK_WRITING 1 /* by the thread */
#define HS_ASK_WAITING 2
#define HS_ASK_TAKEN 3   /* by the tracer */
#define HS_ASK_PASS 4    /* the answer: go on */
#define HS_ASK_STOP 5    /* the answer: into the trap */

/* Whether the program is in a sandbox (seccomp). */
#define HS_SANDBOX_SEEN 0    /* it cannot enter one unseen by the runtime */
#define HS_SANDBOX_ASK 1     /* it can: the recorder has to be asked */
#define HS_SANDBOX_ENTERED 2 /* the recorder has found it in one, */
#define HS_SANDBOX_STRICT 3  /* in strict mode, which forbids the time stamp counter */

/* What is waited for at the program's end, and how far that is. */
#define HS_LAST_SIGNALS 1 /* a signal that ends it */
#define HS_LAST_EXIT 2
#define HS_LAST_ASKED 1
#define HS_LAST_TAKEN 2
#define HS_LAST_DONE 3

/* The recorder looks into the rings once in a while; the word says so. */
#define HS_RECORDER_SLEEPS 1       /* and threads may wake it */
#define HS_RECORDER_SLEEPS_ALONE 2 /* they may not: a sandbox may forbid it */

/* The end of a ring that no record uses: the calls of its thread whose callers
 * have something watched, or whose arguments lead to what is captured at their
 * return; of calls that end together, by jumps, at most so many. */
#define HS_FRAMES 400
#define HS_FRAMES_AT_SLOT 4
#define HS_FRAMES_BYTES (64 << 10)

/* Of each of the stacks on which calls of Go code are written. */
#define HS_GO_STACK_BYTES 16384

/* Records may reach this far past a ring's limit: what signal handlers that
 * interrupt the writing of a record may add (2,400 calls). */
#define HS_GUARD_BYTES (256 << 10)

/* struct hs_local, offsets for the assembler */
#define HS_LOCAL_CUR 0
#define HS_LOCAL_LIMIT 8
#define HS_LOCAL_SHARED 16
#define HS_LOCAL_BUSY 24
#define HS_LOCAL_SAVED 32
#define HS_LOCAL_VFORK 40
#define HS_LOCAL_THREAD 144
#define HS_LOCAL_KEPT 152
#define HS_LOCAL_STACK 176
#define HS_LOCAL_BYTES 192

/* struct hs_ring, offsets for the assembler */
#define HS_RING_HEAD 0

/* struct hs_probe, offsets for the assembler */
#define HS_PROBE_WORD1 0
#define HS_PROBE_WORD2 8
#define HS_PROBE_TRAMPOLINE 16
#define HS_PROBE_BYTES 24

#ifndef __ASSEMBLER__
#include <stdint.h>
#include <stddef.h>

/* One per ring, in shared memory. The producer's words and the consumer's
 * word are on different cache lines. Positions are addresses in the target. */
struct hs_ring
{
  /* written by the target's thread */
  volatile uint64_t head;    /* records before this are whole */
  volatile uint64_t wrap_at; /* where the lap that ended last ended */
  volatile uint32_t tid;
  volatile uint32_t tenancy; /* how often the ring was given to a thread */
  volatile uint64_t lost;    /* records lost so far */
  volatile uint64_t exiting; /* 1: the thread ran its last destructors */
  volatile uint64_t waits;   /* how often it asked for leave to sleep */
  volatile uint64_t told;    /* how many of the lost a record has told of */
  uint64_t unused_a[1];
  /* written by the recorder */
  volatile uint64_t tail;
  volatile uint64_t may_sleep; /* the wait that may sleep */
  uint64_t unused_b[6];
};

/* Page 0 of the shared memory. */
struct hs_control
{
  uint64_t magic;
  volatile uint32_t stop; /* 1: record nothing any more */
  uint32_t drop_when_full;
  volatile uint32_t owner; /* robust futex word: the recorder's thread id */
  volatile uint32_t modules_asked;    /* counts changes of the module list */
  volatile uint32_t modules_answered; /* follows modules_asked */
  uint32_t main_tid;
  uint64_t main_stack_high;
  uint64_t stack_bytes;          /* default size of a thread's stack */
  volatile uint64_t lost_no_ring; /* records lost because all rings were taken */
  /* The recorder asks the thread that waits for `modules_answered` for memory. */
  volatile uint64_t map_address;
  volatile uint64_t map_bytes;
  volatile uint64_t map_result; /* as mmap returns it */
  volatile uint32_t map_asked;
  volatile uint32_t map_answered;
  /* As owner, of the thread that traces the program; 0: none does. The kernel
   * marks it before it lets the program go. */
  volatile uint32_t tracer;
  /* What is captured besides with every call. All 0: nothing. */
  volatile uint32_t capture;       /* bits HS_CAPTURE_ */
  volatile uint32_t capture_stack; /* bytes of the stack from rsp on */
  volatile uint32_t watch_words;   /* how many of `watch` count */
  volatile uint32_t forbidden; /* how often a thread was forbidden the time stamp counter */
  volatile uint32_t foreign_count; /* how many of `foreign` count */
  volatile uint64_t reserved_data; /* bytes of `foreign` that count as data */
  volatile uint64_t taken[HS_RINGS / 64]; /* bit set: ring has a thread */
  /* Watched values, one after the other: head, address, then for each step
   * the offset behind the pointer that is found there, then the number of
   * bytes. */
  volatile uint64_t watch[HS_WATCH_WORDS];
  /* The program's end: its thread shows itself and waits. */
  volatile uint32_t last_wanted;    /* bits HS_LAST_ */
  volatile uint32_t last_tid;       /* the first that came to it; 0: none */
  volatile uint32_t last_state;     /* HS_LAST_ */
  volatile uint32_t last_signal;    /* 0: it exits */
  volatile uint64_t last_info;      /* where its siginfo_t is, */
  volatile uint64_t last_context;   /* and its ucontext_t */
  volatile uint32_t last_sandboxed; /* 1: it may make few system calls */
  volatile uint32_t sandbox; /* HS_SANDBOX_ */
  /* Copies of memory: after so many records the thread waits for the next. */
  volatile uint64_t copy_every;     /* 0: none is waited for */
  volatile uint64_t copy_records;   /* written so far */
  volatile uint64_t copied_records; /* how many there were at the last copy */
  /* What is mapped and not the program's: first address, then end. */
  volatile uint64_t foreign[2 * HS_FOREIGN];
  volatile uint64_t reserved_space; /* bytes of it that count as address space */
  volatile uint32_t sandbox_asked;    /* counts questions whether it is in one */
  volatile uint32_t sandbox_answered; /* follows sandbox_asked */
  volatile uint32_t copies_pass; /* 1: whoever waits for a copy of memory goes on */
  volatile uint32_t recorder_sleeps; /* HS_RECORDER_; 0: it is awake; a futex */
};

/* A question to the tracer: what a thread that has come to a statement looks
 * like, so that it need not be stopped to be judged. */
struct hs_ask
{
  volatile uint64_t state; /* HS_ASK_ */
  uint32_t tid;
  uint32_t unused_a;
  uint64_t site;          /* the statement's address */
  uint64_t flags;         /* rflags, as far as programs can see them */
  uint64_t thread_block;  /* the base of fs */
  uint64_t stack_at;      /* what `stack` begins with */
  uint64_t stack_bytes;   /* how much of it is there */
  uint64_t unused_b;
  uint64_t registers[16]; /* by their DWARF numbers */
  uint64_t vectors[32];   /* xmm0 to xmm15 */
  uint64_t unused_c[8];
  uint64_t stack[HS_ASK_STACK_BYTES / 8];
};

struct hs_asks
{
  volatile uint32_t listening; /* 1: the tracer looks at `waiting` all the time */
  uint32_t unused_a[15];
  volatile uint64_t waiting; /* bit set: this question may be waiting */
  uint64_t unused_b[7];
  struct hs_ask ask[HS_ASKS];
};

/* Thread-local in the target. All zero: no ring yet. The self-contained
 * runtime has one for each ring, and the base of gs leads to a thread's. */
struct hs_local
{
  volatile uint64_t cur;   /* the next record goes here */
  volatile uint64_t limit; /* and may begin before this; 0: ask the slow side */
  struct hs_ring * shared;
  volatile uint64_t busy; /* stack pointer of a write in progress, or 0 */
  uint64_t saved_limit;   /* while `vfork` */
  volatile uint64_t vfork; /* 1: a child of vfork runs on this thread */
  uint64_t base;
  uint64_t end;
  uint64_t pending_lost;
  /* Of handlers that write while `busy` is another's: */
  uint64_t nested_at;   /* the head when the first of them did, and */
  uint64_t nested_from; /* where the interrupted record ended then */
  uint32_t nested_busy; /* 1: one of them is being written */
  uint32_t nested_deep; /* 1: one interrupted another */
  uint64_t stack_low;
  uint64_t stack_high;
  uint32_t tid;
  uint32_t off; /* 1: this thread records nothing (any more) */
  uint64_t room; /* as `limit`, for the slow side: with captures `limit` stays 0 */
  uint64_t block_low; /* the stack is there from here on, */
  uint64_t hole;      /* and this page below is not; 0: none is known */
  /* Of the self-contained runtime: */
  uint64_t thread;  /* the base of fs of the thread that it belongs to; never 0 */
  uint64_t kept[3]; /* registers, while a call of Go code is written */
  uint64_t stack;   /* the end of a stack of ours for that */
  /* Of the other one: */
  uint64_t signal_stack; /* of ours; 0: none */
};

/* A call that is open and whose caller has something watched, or whose
 * arguments lead to what is captured at its return. */
struct hs_frame
{
  uint64_t slot;           /* where its return address is, */
  uint64_t return_address; /* and that */
  uint16_t pointees[8];    /* as in hs_probe */
  uint64_t registers[HS_CAPTURE_WORDS]; /* where the function is entered */
};

/* Behind a ring: the thread's own. */
struct hs_frames
{
  volatile uint64_t count; /* the outermost comes first */
  struct hs_frame frame[HS_FRAMES];
};

/* One per armed function, beside its stub. */
struct hs_probe
{
  uint64_t word1; /* kind, number of xmm words, low 12 bits of the function */
  uint64_t word2; /* high 16 bits of the function, << 48 */
  uint64_t trampoline;
  uint8_t bytes; /* of the enter record */
  uint8_t xmm;   /* 1: it has vector arguments or results */
  uint8_t texts[6]; /* HS_TEXT_ for each integer argument register, or 0 */
  uint16_t pointees[8]; /* HS_POINTEE_ for each of these six, or 0 */
};

_Static_assert (sizeof (struct hs_ring) == 128, "ring header");
_Static_assert (offsetof (struct hs_ring, head) == HS_RING_HEAD, "head");
_Static_assert (offsetof (struct hs_ring, tail) == 64, "tail");
_Static_assert (offsetof (struct hs_local, busy) == HS_LOCAL_BUSY, "busy");
_Static_assert (offsetof (struct hs_local, saved_limit) == HS_LOCAL_SAVED, "saved");
_Static_assert (offsetof (struct hs_local, vfork) == HS_LOCAL_VFORK, "vfork");
_Static_assert (offsetof (struct hs_local, thread) == HS_LOCAL_THREAD, "thread");
_Static_assert (offsetof (struct hs_local, kept) == HS_LOCAL_KEPT, "kept");
_Static_assert (offsetof (struct hs_local, stack) == HS_LOCAL_STACK, "stack");
_Static_assert (sizeof (struct hs_local) == HS_LOCAL_BYTES, "local");
_Static_assert (offsetof (struct hs_local, limit) == HS_LOCAL_LIMIT, "limit");
_Static_assert (offsetof (struct hs_local, shared) == HS_LOCAL_SHARED, "shared");
_Static_assert (offsetof (struct hs_probe, trampoline) == HS_PROBE_TRAMPOLINE, "trampoline");
_Static_assert (offsetof (struct hs_probe, bytes) == HS_PROBE_BYTES, "bytes");
_Static_assert (sizeof (struct hs_control) <= 4096, "control page");
_Static_assert (sizeof (struct hs_ask) == 2048, "question");
_Static_assert (sizeof (struct hs_frames) <= HS_FRAMES_BYTES, "watched calls");
#endif

#endif
