/* Plays the recorder: maps memory, makes stubs; and runs the case asked for. */
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
uint64_t ring_data;
static uint64_t ours_base, ours_size;
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
  ring_data = (uint64_t) control + HS_DATA_OFFSET;
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
  const uint64_t begin[6] = { (uint64_t) control, (uint64_t) pthread_setspecific, key, ours_base, ours_size, 0 };
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
