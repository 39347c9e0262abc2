/* How the self-contained runtime begins: the recorder has mapped its file and
 * makes a thread call hs_load, before anything is armed. No dynamic linker is
 * involved, so its work is done here. Of the C library, if the program has
 * glibc's, a key for thread-specific data is used.
 *
 * Rules of this file: as in runtime.c; nothing that a relocation fills in is
 * used before `relocate` is done.
 */
#include "runtime.h"
#include "system_call.h"

#include <elf.h>

extern const Elf64_Dyn dynamic[] __asm__ ("_DYNAMIC") __attribute__ ((visibility ("hidden")));

const struct hs_exports * hs_begin_alone (struct hs_start * start);

/* Stops in a trap after the call, with the result in rax: the address of
 * hs_exports or, below 4096, the number of the failed check. */
__asm__ (".text\n"
         ".type hs_load, @function\n"
         "hs_load:\n"
         "  .cfi_startproc\n"
         "  call hs_begin_alone\n"
         "  int3\n"
         "  .cfi_endproc\n"
         ".size hs_load, . - hs_load\n");

/* Returns whether the relocation is supported. */
static int
relocate (uint64_t base)
{
  const Elf64_Rela * rows = NULL;
  uint64_t bytes = 0;
  for (const Elf64_Dyn * entry = dynamic; entry->d_tag != DT_NULL; entry++)
  {
    if (entry->d_tag == DT_RELA)
      rows = (const Elf64_Rela *) (base + entry->d_un.d_ptr);
    if (entry->d_tag == DT_RELASZ)
      bytes = entry->d_un.d_val;
    if (entry->d_tag == DT_JMPREL)
      return 0;
  }
  for (uint64_t n = 0; n != bytes / sizeof *rows; n++)
  {
    if (ELF64_R_TYPE (rows[n].r_info) != R_X86_64_RELATIVE)
      return 0;
    *(uint64_t *) (base + rows[n].r_offset) = base + (uint64_t) rows[n].r_addend;
  }
  return 1;
}

/* glibc's thread block, struct pthread, is longer than this. */
#define BLOCK_BYTES 2304

typedef int (* key_create) (uint32_t *, void (*) (void *));
typedef int (* key_delete) (uint32_t);
typedef int (* set_specific) (uint32_t, const void *);

/* Returns where the calling thread's block has the value of a key, by setting
 * it to another one for a moment; 0: not found. */
static uint64_t
place_in_block (set_specific set, uint32_t key)
{
  const void * mark = &hs_exports;
  const void * const volatile * block = (const void * const volatile *) hs_thread_block ();
  uint64_t place = 0;
  if (set (key, mark) != 0)
    return 0;
  for (uint64_t n = 1; n != BLOCK_BYTES / sizeof *block; n++)
    if (block[n] == mark)
      place = n * sizeof *block;
  set (key, NULL);
  return place;
}

/* Has the calling thread a block of glibc? It has its own address in two
 * places. A thread that glibc did not make may have another one, or none. */
static int
has_block (void)
{
  uint64_t block = hs_thread_block ();
  const uint64_t * words = (const uint64_t *) block;
  return block != 0 && words[0] == block && words[2] == block;
}

/* Takes the highest early key that is free: the program gets the numbers that
 * it would get without us, and a second C library, whose keys have the same
 * places, seldom gets this one. HS_EARLY_KEYS: none is free. */
static uint32_t
take_key (key_create create, key_delete delete)
{
  uint32_t best = HS_EARLY_KEYS, key;
  uint32_t taken = 0; /* a bit for each */
  while (create (&key, hs_exports.thread_exits) == 0)
  {
    if (key >= HS_EARLY_KEYS)
    {
      delete (key);
      break;
    }
    taken |= 1u << key;
    if (best == HS_EARLY_KEYS || key > best)
      best = key;
  }
  for (key = 0; key != HS_EARLY_KEYS; key++)
    if ((taken >> key & 1) != 0 && key != best)
      delete (key);
  return best;
}

/* Lets threads keep the pointer to their hs_local in their blocks, as the
 * value of a key. The functions of glibc that this calls take no lock, and
 * allocate nothing for the first keys: the thread may be anywhere. */
static void
make_slot (struct hs_start * start)
{
  set_specific set = (set_specific) start->set_specific;
  key_create create = (key_create) start->key_create;
  key_delete delete = (key_delete) start->key_delete;
  start->set_specific = 0;
  if (create == NULL || delete == NULL || set == NULL || !has_block ()
      || *(const uint32_t *) (hs_thread_block () + HS_BLOCK_TID_GLIBC)
             != (uint32_t) system_call (SYS_gettid, 0, 0, 0, 0))
    return;
  uint32_t key = take_key (create, delete);
  if (key == HS_EARLY_KEYS)
    return;
  hs_slot = hs_exports.slot = place_in_block (set, key);
  start->set_specific = hs_slot != 0 ? (uint64_t) set : 0;
  start->key = key;
}

const struct hs_exports *
hs_begin_alone (struct hs_start * start)
{
  if (!relocate (start->own_base))
    return (const struct hs_exports *) 10;
  hs_fill_exports ();
  make_slot (start);
  int failed = hs_init (start);
  if (failed != 0)
    return (const struct hs_exports *) (uint64_t) failed;
  return &hs_exports;
}
