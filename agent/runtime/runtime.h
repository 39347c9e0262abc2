/* Shared by the files of the runtime. */
#ifndef HS_RUNTIME_H
#define HS_RUNTIME_H

#include "layout.h"

#define HS_HOOK (1UL << 63)
#define HS_HOOK_XMM (1UL << 62)

/* The shortest watched value has three words. */
#define HS_WATCHES (HS_WATCH_WORDS / 3)

/* Most targets of arguments that are captured with one enter or leave. */
#define HS_POINTEES 12

struct hs_runtime
{
  struct hs_control * control;
  struct hs_ring * rings;
  uint64_t data;
  uint32_t key;
  int (* set_specific) (uint32_t, const void *); /* NULL: no destructor */
  uint64_t own_base, own_size; /* where this library is mapped */
  uint64_t missing_shadows;     /* bit n: shadow n does not exist */
  uint32_t tid_at; /* where threads' ids lie in their blocks; 0: unknown */
  volatile uint32_t time_was_forbidden; /* 1: to some thread, which may have made others */
  uint64_t entries_only; /* 1: returns are not hooked */
  uint64_t stacks;       /* one for each ring, for calls of Go code; or 0 */
  volatile uint64_t latest; /* the time when a thread began */
};

/* Where C libraries keep a thread's id in its block; trusted once it was seen. */
#define HS_BLOCK_TID_MUSL 0x30

/* In hs_local.off. */
#define HS_OFF 1
#define HS_OFF_NO_TIME 2 /* until the thread may read the counter again */

/* Limits to restore: the soft and the hard one. */
struct hs_limits
{
  uint64_t space[2], data[2];
};

/* Addresses; the second is exclusive. */
struct hs_range
{
  uint64_t from, to;
};

/* A libc (or libgcc_s) function and its replacement; `by` == NULL: only its
 * address is wanted. */
struct hs_replacement
{
  const char * name;
  void * by;
  void ** original;
};

#ifdef HS_SELF_CONTAINED
#define HS_EXPORTED
#else
#define HS_EXPORTED __attribute__ ((visibility ("default")))
#endif

/* The base of fs: the thread block of C libraries. */
static inline uint64_t
hs_thread_block (void)
{
  uint64_t found;
#ifdef HS_SELF_CONTAINED
  __asm__ volatile ("rdfsbase %0" : "=r" (found));
#else
  __asm__ ("mov %%fs:0, %0" : "=r" (found));
#endif
  return found;
}

/* Code that looks for a thread's data: where it is, where it continues for a
 * thread that has none, and where for one that has. Each is relative to the
 * number's own address. */
struct hs_lookup
{
  int32_t code, none, found;
};

/* The one symbol that the library exports; mirrored in agent/src/runtime.rs. */
struct hs_exports
{
  uint64_t version;
  void * enter;
  void * enter_xmm;
  void * thread_exits; /* void (void *): the thread key's destructor */
  const struct hs_replacement * replacements;
  uint64_t replacement_count;
  void * enter_go; /* only in the self-contained runtime */
  void * enter_texts;
  uint64_t slot;       /* hs_slot */
  const struct hs_lookup * lookups; /* up to */
  const struct hs_lookup * lookups_end;
};


/* What the agent's script, or the recorder's loader, passes once, before
 * anything is armed. */
struct hs_start
{
  uint64_t shared;         /* where the shared memory is mapped */
  uint64_t set_specific;   /* pthread_setspecific, or 0 */
  uint64_t key;
  uint64_t own_base;
  uint64_t own_size;
  uint64_t missing_shadows; /* bit n: shadow n could not be mapped */
  /* From the loader only: */
  uint64_t entries_only; /* 1: returns are not hooked */
  uint64_t stacks;       /* memory for HS_RINGS stacks; 0: it is no Go program */
  uint64_t key_create;   /* pthread_key_create; 0: the C library has no thread blocks that we know */
  uint64_t key_delete;   /* pthread_key_delete */
};

/* The values of the first keys are in the thread's block; a later one needs
 * malloc. */
#define HS_EARLY_KEYS 32

/* What the thunks push, lowest address first. */
struct hs_saved
{
  uint64_t rbp, r15, r14, r13, r12, rbx;
  uint64_t r10, r9, r8, rsi, rdi, rdx, rcx, rax, r11, return_address;
};

struct hs_saved_leave
{
  uint64_t rbp, r15, r14, r13, r12, rbx;
  uint64_t r11, r10, r9, r8, rdi, rsi, rcx, rdx, rax, slot;
};

/* What hs_before_syscall and hs_after_syscall push, lowest address first: a
 * return address is on top of the stack then, below the program's red zone. */
struct hs_saved_call
{
  uint64_t rbp, r9, r8, r10, rdx, rsi, rdi, r11, rax, flags, return_address;
};
#define HS_SAVED_CALL_BYTES (sizeof (struct hs_saved_call) + 128)

/* Memory that is written into a record. */
struct hs_piece
{
  uint64_t address;
  uint64_t bytes;
  const void * from; /* where it can be read without a fault; NULL: the kernel reads it */
};

/* What hs_enter_go pushes onto our stack, lowest address first. */
struct hs_saved_go
{
  uint64_t r11, r10, r9, r8, rsi, rdi, rdx, rcx, rax;
  const struct hs_probe * probe;
  uint64_t local; /* 0: the thread had none */
  const uint64_t * sp; /* of the goroutine, where the return address is */
};

/* What is captured with one enter or leave, before it is written. */
struct hs_capture
{
  uint64_t bytes;      /* of the record; 0: nothing is captured */
  uint64_t payload;    /* bytes of it after word 1 */
  uint64_t registers[HS_CAPTURE_WORDS];
  uint64_t stack;      /* bytes of the stack, from rsp on */
  uint32_t tid;
  uint32_t stack_is_safe; /* 1: that seems to be the thread's own stack, */
  uint64_t stack_high;    /* which ends here */
  uint64_t is_own_stack;  /* 1: all of it is there from rsp on */
  uint32_t watch_words;
  const struct hs_frames * frames;
  uint16_t frame_of[HS_WATCHES]; /* of each watched value: 1 + its call's number, or 0 */
  uint64_t thread_pointer; /* 0: no watched value is relative to it */
  uint64_t function;   /* 1 + the function that is entered; 0: one is left */
  uint64_t return_address; /* of that function */
  uint64_t with_registers; /* HS_CAPTURE_REGISTERS: they are captured; or 0 */
  const struct hs_probe * probe; /* of that function; NULL: one is left */
  uint32_t is_tail;    /* 1: it replaces the one whose call this was */
  uint32_t pointee_count;
  uint64_t pointee_at[HS_POINTEES];
  uint64_t words_at[6], text_at[6];
  uint16_t words_bytes[6], text_bytes[6], pointee_bytes[HS_POINTEES];
};

extern struct hs_runtime hs_runtime;
extern volatile uint64_t hs_alive;
#ifndef HS_SELF_CONTAINED
extern __thread struct hs_local hs_local __attribute__ ((tls_model ("initial-exec")));
#else
extern struct hs_local * hs_locals_begin; /* one for each ring */
/* Where a thread's block has the pointer to its hs_local; 0: nowhere, the base
 * of gs points to it. */
extern uint64_t hs_slot;
#endif
extern volatile uint32_t hs_in_sandbox;
extern struct hs_exports hs_exports;

extern const struct hs_replacement hs_replacements[];
extern const unsigned hs_replacement_count;

int hs_init (const struct hs_start * start);
void hs_fill_exports (void);
void hs_enter (void);
void hs_enter_xmm (void);
void hs_enter_texts (void);
void hs_enter_go (void);
void hs_enter_go_slow (const struct hs_saved_go * saved);
int hs_vfork (void);
void hs_leave (void);
uint64_t hs_return_address_at (uint64_t location);
void hs_leave_xmm (void);
void hs_record_output (int fd, const char * bytes, uint64_t length);
void hs_look_for_signals (void);
void hs_record_interrupted_output (uint64_t rip, uint64_t result, uint64_t rdi, uint64_t rsi, uint64_t rdx);
void hs_record_fork (int child);
void hs_record_clone (int child);
struct hs_local * hs_begin_spawn (void);
void hs_end_spawn (struct hs_local * local, int child);
void hs_record_exec (const char * path);
void hs_record_exec_failed (void);
int * hs_errno_location (void);
void hs_record_name (const char * name);
void hs_modules_changed (void);
void hs_syscall (void);
int hs_prctl (int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
int hs_mlockall (int flags);
int hs_returned (long result);
void hs_note_reserved (void);
void hs_lower_in_child (void);
void hs_lower_limits (struct hs_limits * found);
void hs_put_limits_back (const struct hs_limits * found);
int hs_is_sandboxed (void);
int hs_time_is_forbidden (void);
void hs_forbid_time (int is_so);
void hs_allow_time (void);
int hs_recording_ended (void);
void hs_wake_recorder (void);
int hs_is_in_vfork (void);
int hs_captures (void);
int hs_keeps_texts (const struct hs_probe * probe);
void hs_capture_enter (struct hs_capture * capture, struct hs_local * local,
                       const struct hs_saved * saved,
                       const struct hs_probe * probe);
void hs_capture_leave (struct hs_capture * capture, struct hs_local * local,
                       const struct hs_saved_leave * saved);
void hs_capture_write (const struct hs_capture * capture, uint64_t * words,
                       uint64_t ticks);
struct hs_local * hs_local_or_register (void);
struct hs_local * hs_own_local (void);
void hs_note_end (void);
uint64_t hs_read_memory (uint32_t tid, void * to, uint64_t from, uint64_t bytes);
/* Returns how many bytes can be read from there; `tid` is the calling thread. */
uint64_t hs_readable (const void * from, uint64_t bytes);
uint64_t hs_own_stack_bytes (struct hs_local * local, uint64_t rsp, uint64_t at);
void hs_record_pieces (struct hs_local * local, uint64_t kind, const uint64_t * words, uint64_t count,
                       const struct hs_piece * pieces, unsigned piece_count);
void hs_before_syscall (void);
void hs_after_syscall (void);
void hs_unwinder_leaves (void);
void hs_longjmp_leaves (void);
void hs_longjmp_of_musl_leaves (void);
void hs_record_words (uint64_t word1, const volatile uint64_t * words,
                      uint64_t count);

/* fronts.c */
uint64_t hs_front_of (uint64_t handler);
uint64_t hs_behind_front (uint64_t handler);

/* last.c */
void hs_catch_signals (void);
int hs_answer_time (void * context);

/* What the kernel calls a struct sigaction. */
struct hs_kernel_sigaction
{
  uint64_t handler;
  uint64_t flags;
  uint64_t restorer;
  uint64_t mask;
};

void hs_as_program_sees (uint64_t signal, struct hs_kernel_sigaction * action, int is_old);
void hs_signals_are_left_alone (void);
void hs_give_signal_stack (unsigned index);
void hs_exit (int status);

#endif
