/* Shared by the test programs' files: the part of the recorder that the
 * runtime needs, played in the same process. expected.h is made by native.rs
 * from docs/wire.md and the crate's constants. */
#ifndef DRIVER_H
#define DRIVER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "expected.h"

#ifdef __cplusplus
extern "C" {
#else
#include "layout.h"
extern struct hs_control * control;
extern struct hs_ring * rings;
extern uint64_t ring_data; /* where ring 0 begins */
#endif

#define CHECK(condition, ...)                                              \
  do                                                                       \
    if (!(condition))                                                      \
    {                                                                      \
      fprintf (stderr, "%s:%d: %s:", __FILE__, __LINE__, #condition);     \
      fprintf (stderr, " " __VA_ARGS__);                                   \
      fputc ('\n', stderr);                                                \
      _Exit (1);                                                           \
    }                                                                      \
  while (0)

#define EQUAL(left, right)                                                 \
  CHECK ((uint64_t) (left) == (uint64_t) (right), "%#llx is not %#llx",    \
         (unsigned long long) (left), (unsigned long long) (right))

/* Maps everything and starts the runtime. `shared` is a file to map, or NULL. */
void start (const char * library, const char * shared);

/* Makes a stub that records calls of `function`, as the recorder does. */
void * traced (void * function, uint32_t id, unsigned xmm_args, int ret_xmm);

/* The replacement that the runtime offers for a function of libc, which is to
 * reach the original by `original`. */
void * replacement (const char * name, void * original);

/* Is this address code of the runtime? */
int is_ours (uint64_t pc);

/* The calling thread's ring. */
int my_ring (void);
uint64_t ring_base (int ring);
uint64_t ring_end (int ring);
/* Where the next record will go, when no write is in progress. */
uint64_t ring_head (int ring);

/* Records taken out of a ring. */
struct tape
{
  uint64_t * words;
  size_t count, next, room;
};

/* Adds what waits in the ring and lets the thread reuse the place. */
void drain (struct tape * tape, int ring);
int at_end (const struct tape * tape);
/* The next record; its kind must be known and its end be there. */
uint64_t * take (struct tape * tape);
unsigned kind_of (const uint64_t * record);

struct call
{
  uint32_t id;
  uint64_t slot, return_address;
  uint64_t args[WIRE_INT_ARGS];
};

void check_enter (const uint64_t * record, unsigned kind, const struct call * call,
                  unsigned xmm_count, const uint64_t * xmm);
void check_leave (const uint64_t * record, uint64_t slot, uint64_t rax, uint64_t rdx,
                  const uint64_t * xmm);
void check_thread (const uint64_t * record, uint64_t low, uint64_t high, const char * name);
void expect_enter (struct tape * tape, unsigned kind, const struct call * call);
void expect_leave (struct tape * tape, uint64_t slot, uint64_t rax);
/* Skips the record that a thread writes when it gets its ring. */
void expect_thread (struct tape * tape);
void expect_gap (struct tape * tape, uint64_t reason, uint64_t lost);

extern uint64_t main_stack_high;
#define STACK_BYTES (8 << 20)

/* Writes a record of output of so many bytes, at most 4096. */
void output (uint64_t length);

/* Writes records of output, in the next lap if need be, until this thread's lap
 * has room for `left` bytes and less than one more of them (24 bytes). */
void fill (uint64_t left);

/* The state of a thread of this process as in /proc. */
char thread_state (int tid);

/* asm.S: calls the last argument with the others; returns to shim_returns. */
uint64_t shim (uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, void *);
/* The same with a trap after every instruction; returns to step_returns. */
uint64_t step_shim (uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, void *);
/* The same on the stack that ends at the last argument; returns to other_returns. */
uint64_t other_stack_shim (uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, void *, void *);
extern char shim_returns[], step_returns[], other_returns[], step_shim_end[];

/* Expected record of a call through `shim`. */
#define SHIM_CALL(id, slot, ...) \
  ((struct call) { id, slot, (uint64_t) shim_returns, { __VA_ARGS__ } })

/* In a called function: where its return address is. */
#define SLOT() ((uint64_t) __builtin_dwarf_cfa () - 8)

#define NOINLINE __attribute__ ((noinline, noclone))

/* Returns `a * 3 + b` and tells where it was called from. */
uint64_t work (uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);
extern __thread uint64_t work_slot;

#ifdef __cplusplus
}
#endif

#endif
