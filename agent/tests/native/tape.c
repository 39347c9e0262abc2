/* Reads rings as docs/wire.md says, and compares records word by word. */
#define _GNU_SOURCE
#include "driver.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int
my_ring (void)
{
  uint32_t tid = (uint32_t) syscall (SYS_gettid);
  for (int ring = 0; ring < HS_RINGS; ring++)
    if (rings[ring].tid == tid)
      return ring;
  CHECK (0, "thread %u has no ring", tid);
  return -1;
}

uint64_t
ring_base (int ring)
{
  return ring_data + (uint64_t) ring * HS_RING_BYTES;
}

uint64_t
ring_end (int ring)
{
  return ring_base (ring) + HS_RING_BYTES - HS_FRAMES_BYTES;
}

uint64_t
ring_head (int ring)
{
  return rings[ring].head != 0 ? rings[ring].head : ring_base (ring);
}

static void
append (struct tape * tape, uint64_t from, uint64_t to)
{
  size_t count = (to - from) / 8;
  CHECK (from <= to && (to - from) % 8 == 0, "%#lx to %#lx", from, to);
  if (tape->count + count > tape->room)
  {
    tape->room = (tape->count + count) * 2;
    tape->words = realloc (tape->words, tape->room * 8);
  }
  memcpy (tape->words + tape->count, (void *) from, to - from);
  tape->count += count;
}

void
drain (struct tape * tape, int ring)
{
  uint64_t base = ring_base (ring), head = ring_head (ring);
  uint64_t tail = rings[ring].tail != 0 ? rings[ring].tail : base;
  if (head < tail)
  {
    CHECK (rings[ring].wrap_at <= ring_end (ring));
    append (tape, tail, rings[ring].wrap_at);
    tail = base;
  }
  append (tape, tail, head);
  rings[ring].tail = head;
}

int
at_end (const struct tape * tape)
{
  return tape->next == tape->count;
}

unsigned
kind_of (const uint64_t * record)
{
  return record[1] & ((1U << WIRE_KIND_BITS) - 1);
}

static unsigned
xmm_of (const uint64_t * record)
{
  return record[1] >> WIRE_XMM_SHIFT & 15;
}

/* Whether and how often a thread waited for room depends on the reader. */
static void
pass_waits (struct tape * tape)
{
  for (;;)
  {
    CHECK (tape->next + 2 <= tape->count, "no record is left");
    const uint64_t * record = tape->words + tape->next;
    if (kind_of (record) != WIRE_KIND_SYSCALL || xmm_of (record) != WIRE_RING_WAIT)
      return;
    CHECK (record[2] != 0 && record[2] <= record[0], "%#lx to %#lx", record[2], record[0]);
    tape->next += WIRE_RING_WAIT_WORDS;
  }
}

uint64_t *
take (struct tape * tape)
{
  pass_waits (tape);
  uint64_t * record = tape->words + tape->next;
  size_t xmm = xmm_of (record), length = 0;
  switch (kind_of (record))
  {
    case WIRE_KIND_ENTER: case WIRE_KIND_ENTER_TAIL: case WIRE_KIND_ENTER_NOLEAVE:
      length = WIRE_ENTER_WORDS + xmm; break;
    case WIRE_KIND_LEAVE: length = WIRE_LEAVE_WORDS + xmm; break;
    case WIRE_KIND_THREAD: length = WIRE_THREAD_WORDS; break;
    case WIRE_KIND_THREAD_EXIT: length = WIRE_THREAD_EXIT_WORDS; break;
    case WIRE_KIND_THREAD_NAME: length = WIRE_THREAD_NAME_WORDS; break;
    case WIRE_KIND_GAP: length = WIRE_GAP_WORDS; break;
    case WIRE_KIND_FORK: length = WIRE_FORK_WORDS; break;
    case WIRE_KIND_OUTPUT: case WIRE_KIND_EXEC:
      length = WIRE_BYTES_WORDS + ((record[1] >> WIRE_LEN_SHIFT) + 7) / 8; break;
    default: CHECK (0, "word 1 is %#lx at word %zu of %zu", record[1], tape->next, tape->count);
  }
  tape->next += length;
  CHECK (tape->next <= tape->count, "the record is cut short");
  CHECK (record[0] != 0, "the record has no time");
  return record;
}

static uint64_t
slot_bits (uint64_t slot)
{
  return slot >> WIRE_SLOT_SHIFT << WIRE_SLOT_POSITION;
}

void
check_enter (const uint64_t * record, unsigned kind, const struct call * call,
             unsigned xmm_count, const uint64_t * xmm)
{
  uint64_t low = call->id & ((1U << WIRE_FUNCTION_LOW_BITS) - 1);
  uint64_t high = call->id >> WIRE_FUNCTION_LOW_BITS;
  EQUAL (record[1], slot_bits (call->slot) | low << WIRE_VALUE_SHIFT
                        | (uint64_t) xmm_count << WIRE_XMM_SHIFT | kind);
  EQUAL (record[2], high << WIRE_FUNCTION_HIGH_SHIFT | call->return_address);
  for (int i = 0; i < WIRE_INT_ARGS; i++)
    EQUAL (record[3 + i], call->args[i]);
  for (unsigned i = 0; i < xmm_count; i++)
    EQUAL (record[WIRE_ENTER_WORDS + i], xmm[i]);
}

void
check_leave (const uint64_t * record, uint64_t slot, uint64_t rax, uint64_t rdx,
             const uint64_t * xmm)
{
  uint64_t count = xmm != NULL ? WIRE_LEAVE_XMM : 0;
  EQUAL (record[1], slot_bits (slot) | count << WIRE_XMM_SHIFT | WIRE_KIND_LEAVE);
  EQUAL (record[2], rax);
  EQUAL (record[3], rdx);
  for (uint64_t i = 0; i < count; i++)
    EQUAL (record[WIRE_LEAVE_WORDS + i], xmm[i]);
}

void
check_thread (const uint64_t * record, uint64_t low, uint64_t high, const char * name)
{
  char padded[WIRE_THREAD_NAME_LEN] = { 0 };
  memcpy (padded, name, strlen (name));
  EQUAL (record[1], (uint64_t) syscall (SYS_gettid) << WIRE_VALUE_SHIFT | WIRE_KIND_THREAD);
  EQUAL (record[2], low);
  EQUAL (record[3], high);
  CHECK (memcmp (record + 4, padded, sizeof (padded)) == 0, "%.16s", (const char *) (record + 4));
}

void
expect_enter (struct tape * tape, unsigned kind, const struct call * call)
{
  check_enter (take (tape), kind, call, 0, NULL);
}

void
expect_leave (struct tape * tape, uint64_t slot, uint64_t rax)
{
  uint64_t * record = take (tape);
  check_leave (record, slot, rax, record[3], NULL);
}

void
expect_thread (struct tape * tape)
{
  EQUAL (kind_of (take (tape)), WIRE_KIND_THREAD);
}

void
expect_gap (struct tape * tape, uint64_t reason, uint64_t lost)
{
  uint64_t * record = take (tape);
  EQUAL (record[1], reason << WIRE_VALUE_SHIFT | WIRE_KIND_GAP);
  EQUAL (record[2], lost);
}
