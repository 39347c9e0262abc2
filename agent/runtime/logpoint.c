/* Log messages that the program itself records: the recorder's compiled probe
 * code calls this with the values.
 *
 * Rules of this file: as in runtime.c; also, the direction flag is the
 * program's. A text's memory may not be mapped: the recorder then moves the
 * thread from hs_text_load to hs_text_fault.
 */
#include "runtime.h"

/* Next to the calling code; made by the recorder. */
struct hs_log_spec
{
  uint64_t word1; /* of the record */
  uint32_t words;
  uint32_t texts;
  struct
  {
    uint32_t word; /* holds the text's address; its length and bytes go there */
    uint32_t room; /* bytes */
  } text[];
};

uint64_t hs_copy_text (char * to, const char * from, uint64_t room);
uint64_t hs_log (const struct hs_log_spec * spec, uint64_t * words);

/* Copies the bytes before the first zero, at most `room`. Returns how many
 * they are, room + 1 if they are more, -1 if they cannot be read. */
__asm__ (".text\n"
         ".hidden hs_copy_text, hs_runtime\n"
         ".type hs_text_load, @function\n"
         ".type hs_text_fault, @function\n"
         ".type hs_copy_text, @function\n"
         "hs_copy_text:\n"
         "  .cfi_startproc\n"
         "  xor %eax, %eax\n"
         "hs_text_load:\n"
         "  movzbl (%rsi,%rax), %ecx\n"
         "  test %ecx, %ecx\n"
         "  je 1f\n"
         "  cmp %rdx, %rax\n"
         "  je 2f\n"
         "  mov %cl, (%rdi,%rax)\n"
         "  inc %rax\n"
         "  jmp hs_text_load\n"
         "2:\n"
         "  inc %rax\n"
         "1:\n"
         "  ret\n"
         "hs_text_fault:\n"
         "  mov $-1, %rax\n"
         "  ret\n"
         "  .cfi_endproc\n"
         ".size hs_copy_text, . - hs_copy_text\n");

/* Shows the recorder, which looks up only functions, where hs_runtime is: this
 * many bytes from here. */
__asm__ (".text\n"
         ".balign 8\n"
         ".type hs_runtime_at, @function\n"
         "hs_runtime_at:\n"
         "  .quad hs_runtime - hs_runtime_at\n"
         ".size hs_runtime_at, . - hs_runtime_at\n");

/* Texts are cut by characters, and only in ASCII is a character a byte. */
static int
is_ascii (const volatile uint64_t * words, uint64_t bytes)
{
  uint64_t seen = 0;
  for (uint64_t n = 0; n != (bytes + 7) / 8; n++)
    seen |= words[n];
  return (seen & 0x8080808080808080) == 0;
}

/* Returns 0 once a record with the words is in the thread's ring, or if the
 * thread records nothing; 1 if the recorder must make the message. */
uint64_t
hs_log (const struct hs_log_spec * spec, uint64_t * words)
{
  for (uint32_t n = 0; n != spec->texts; n++)
  {
    volatile uint64_t * at = words + spec->text[n].word;
    uint64_t room = spec->text[n].room;
    const char * from = (const char *) at[0];
    for (uint64_t word = 1; word != 1 + (room + 7) / 8; word++)
      at[word] = 0;
    uint64_t length = hs_copy_text ((char *) (at + 1), from, room);
    if (length == (uint64_t) -1)
      return 1;
    if (length > room && !is_ascii (at + 1, room))
      return 1;
    at[0] = length;
  }
  hs_record_words (spec->word1, words, spec->words);
  return 0;
}
