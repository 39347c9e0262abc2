/* Plays the recorder: maps memory, makes stubs, reads rings as docs/wire.md
 * says, and compares records word by word. */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime.h"

struct hs_control * control;
struct hs_ring * rings;
uint64_t main_stack_high;

static const struct hs_exports * exports;
static uint64_t data, ours_base, ours_size;
static uint8_t * region, * region_end;

static void
find_main_stack (void)
{
  char line[512];
  FILE * maps = fopen ("/proc/self/maps", "r");
  CHECK (maps != NULL);
  while (fgets (line, sizeof (line), maps) != NULL)
    if (strstr (line, "[stack]") != NULL)
      main_stack_high = strtoull (strchr (line, '-') + 1, NULL, 16);
  fclose (maps);
  CHECK (main_stack_high != 0);
}

static int
find_ours (struct dl_phdr_info * info, size_t size, void * argument)
{
  (void) size;
  uint64_t at = (uint64_t) argument;
  for (int i = 0; i < info->dlpi_phnum; i++)
  {
    const ElfW (Phdr) * part = &info->dlpi_phdr[i];
    uint64_t end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
    if (part->p_type == PT_LOAD && at >= info->dlpi_addr && at < end)
    {
      ours_base = info->dlpi_addr;
      ours_size = end - ours_base;
      return 1;
    }
  }
  return 0;
}

static void
map_shadow (uint64_t base, uint64_t bytes)
{
  void * there = mmap ((void *) base, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  CHECK (there == (void *) base, "shadow at %#lx: %m", base);
}

void
start (const char * library, const char * shared)
{
  int fd = shared != NULL ? open (shared, O_RDWR) : memfd_create ("rings", 0);
  CHECK (fd >= 0, "%s: %m", shared);
  if (shared == NULL)
    CHECK (ftruncate (fd, EXPECTED_TOTAL_BYTES) == 0);
  control = mmap (NULL, EXPECTED_TOTAL_BYTES, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_NORESERVE, fd, 0);
  CHECK (control != MAP_FAILED, "%m");
  CHECK (madvise (control, EXPECTED_TOTAL_BYTES, MADV_DONTFORK) == 0);
  close (fd);
  rings = (struct hs_ring *) ((char *) control + 4096);
  data = (uint64_t) control + HS_DATA_OFFSET;
  find_main_stack ();
  control->main_tid = (uint32_t) getpid ();
  control->main_stack_high = main_stack_high;
  control->stack_bytes = STACK_BYTES;
  if (shared != NULL)
  {
    printf ("%lx\n", (uint64_t) control);
    fflush (stdout);
  }
  else
  {
    control->magic = HS_MAGIC;
    control->owner = (uint32_t) getpid ();
  }
#define MAP_SHADOW(base, bytes) map_shadow (base, bytes);
  EXPECTED_SHADOWS (MAP_SHADOW)

  void * loaded = dlopen (library, RTLD_NOW);
  CHECK (loaded != NULL, "%s", dlerror ());
  exports = dlsym (loaded, "hs_exports");
  EQUAL (exports->version, EXPECTED_EXPORTS_VERSION);
  CHECK (dl_iterate_phdr (find_ours, (void *) exports->enter) == 1);
  uint64_t last = (uint64_t) exports;
  if (last - ours_base >= ours_size)
    ours_size = last + sizeof (*exports) - ours_base;

  pthread_key_t key;
  CHECK (pthread_key_create (&key, (void (*) (void *)) exports->thread_exits) == 0);
  const uint64_t begin[5] = { (uint64_t) control, (uint64_t) pthread_setspecific, key, ours_base, ours_size };
  int (* init) (const void *) = (int (*) (const void *)) dlsym (loaded, "hs_init");
  EQUAL (init (begin), 0);

  region = mmap (NULL, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK (region != MAP_FAILED);
  region_end = region + 16;
  memcpy (region, &exports->enter, 8);
  memcpy (region + 8, &exports->enter_xmm, 8);
}

int
is_ours (uint64_t pc)
{
  return pc - ours_base < ours_size;
}

static uint8_t *
put_relative (uint8_t * at, const char * code, size_t length, const void * to)
{
  memcpy (at, code, length);
  int32_t distance = (int32_t) ((const uint8_t *) to - (at + length + 4));
  memcpy (at + length, &distance, 4);
  return at + length + 4;
}

void *
traced (void * function, uint32_t id, unsigned xmm_args, int ret_xmm)
{
  struct hs_probe * probe = (struct hs_probe *) region_end;
  uint64_t low = id & ((1U << WIRE_FUNCTION_LOW_BITS) - 1);
  probe->word1 = low << WIRE_VALUE_SHIFT | (uint64_t) xmm_args << WIRE_XMM_SHIFT | WIRE_KIND_ENTER;
  probe->word2 = (uint64_t) (id >> WIRE_FUNCTION_LOW_BITS) << WIRE_FUNCTION_HIGH_SHIFT;
  probe->trampoline = (uint64_t) function;
  probe->bytes = (uint8_t) ((WIRE_ENTER_WORDS + xmm_args) * WIRE_WORD_LEN);
  probe->xmm = xmm_args != 0 || ret_xmm;
  uint8_t * stub = (uint8_t *) (probe + 1);
  uint8_t * at = put_relative (stub, "\x41\x53\x4c\x8d\x1d", 5, probe);
  put_relative (at, "\xff\x25", 2, region + (probe->xmm ? 8 : 0));
  region_end = stub + 16;
  return stub;
}

void *
replacement (const char * name, void * original)
{
  for (uint64_t i = 0; i < exports->replacement_count; i++)
    if (strcmp (exports->replacements[i].name, name) == 0)
    {
      *exports->replacements[i].original = original;
      return exports->replacements[i].by;
    }
  CHECK (0, "no replacement of %s", name);
  return NULL;
}

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
  return data + (uint64_t) ring * HS_RING_BYTES;
}

uint64_t
ring_end (int ring)
{
  return ring_base (ring) + HS_RING_BYTES;
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

uint64_t *
take (struct tape * tape)
{
  CHECK (tape->next + 2 <= tape->count, "no record is left");
  uint64_t * record = tape->words + tape->next;
  size_t xmm = record[1] >> WIRE_XMM_SHIFT & 15, length = 0;
  switch (kind_of (record))
  {
    case WIRE_KIND_ENTER: case WIRE_KIND_ENTER_TAIL: case WIRE_KIND_ENTER_NOLEAVE:
      length = WIRE_ENTER_WORDS + xmm; break;
    case WIRE_KIND_LEAVE: length = WIRE_LEAVE_WORDS + xmm; break;
    case WIRE_KIND_THREAD: length = WIRE_THREAD_WORDS; break;
    case WIRE_KIND_THREAD_EXIT: length = WIRE_THREAD_EXIT_WORDS; break;
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

char
thread_state (int tid)
{
  char path[64], line[512] = "";
  snprintf (path, sizeof (path), "/proc/self/task/%d/stat", tid);
  FILE * stat = fopen (path, "r");
  CHECK (stat != NULL && fgets (line, sizeof (line), stat) != NULL);
  fclose (stat);
  return strrchr (line, ')')[2];
}

static ssize_t
written_at_once (int fd, const void * bytes, size_t length)
{
  (void) fd, (void) bytes;
  return (ssize_t) length;
}

void
output (uint64_t length)
{
  static const char bytes[4096];
  ssize_t (* write_it) (int, const void *, size_t) = replacement ("write", (void *) written_at_once);
  EQUAL (write_it (1, bytes, length), length);
}

void
fill (uint64_t left)
{
  output (8); /* so that there is a ring */
  int ring = my_ring ();
  uint64_t goal = ring_end (ring) - HS_GUARD_BYTES - left;
  while (ring_head (ring) > goal || ring_head (ring) + 8192 <= goal)
  {
    output (4096);
    rings[ring].tail = ring_head (ring);
  }
  while (ring_head (ring) + 24 <= goal)
    output (8);
  rings[ring].tail = ring_head (ring);
}

__thread uint64_t work_slot;

NOINLINE uint64_t
work (uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
  (void) c, (void) d, (void) e, (void) f;
  work_slot = SLOT ();
  return a * 3 + b;
}

#define CASE(name) void case_##name (void);
#include "cases.h"
#undef CASE

static const struct
{
  const char * name;
  void (* run) (void);
} cases[] = {
#define CASE(name) { #name, case_##name },
#include "cases.h"
#undef CASE
};

int
main (int argc, char ** argv)
{
  CHECK (argc >= 3, "usage: driver CASE LIBRARY [SHARED]");
  alarm (120); /* a test that hangs has failed */
  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++)
    if (strcmp (cases[i].name, argv[1]) == 0)
    {
      start (argv[2], argc > 3 ? argv[3] : NULL);
      cases[i].run ();
      return 0;
    }
  CHECK (0, "no case %s", argv[1]);
}
