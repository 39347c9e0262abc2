/* How the self-contained runtime begins: the recorder has mapped its file and
 * makes a thread call hs_load, before anything is armed. No dynamic linker is
 * involved, so its work is done here.
 *
 * Rules of this file: as in runtime.c; nothing that a relocation fills in is
 * used before `relocate` is done.
 */
#include "runtime.h"

#include <elf.h>

extern const Elf64_Dyn dynamic[] __asm__ ("_DYNAMIC") __attribute__ ((visibility ("hidden")));

const struct hs_exports * hs_begin_alone (const struct hs_start * start);

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

const struct hs_exports *
hs_begin_alone (const struct hs_start * start)
{
  if (!relocate (start->own_base))
    return (const struct hs_exports *) 10;
  hs_fill_exports ();
  int failed = hs_init (start);
  if (failed != 0)
    return (const struct hs_exports *) (uint64_t) failed;
  return &hs_exports;
}
