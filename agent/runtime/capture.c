/* Additional captures with an enter or leave: registers, a piece of the stack,
 * texts and other memory that arguments point to, watched values.
 *
 * The rules of runtime.c hold. Memory that may not be mapped is read by the
 * kernel (process_vm_readv), which reports an error instead of raising a
 * signal; the thread's own stack, from rsp on, is read directly. A capture is
 * sized first and written once it has room; memory that was unmapped meanwhile
 * is left out.
 */
#include "runtime.h"
#include "system_call.h"

#include <sys/uio.h>

#define PAGE 4096UL
#define SECTION_BYTES 16 /* an address and a length */
#define PROBED 64 /* pages of a stack that are probed at once */
#define MAX_STEPS 8
#define RSP 7 /* its number in DWARF */

/* The integer argument registers, by their DWARF numbers. */
static const uint8_t argument_registers[6] = { 5, 4, 1, 2, 8, 9 };

static uint64_t
padded (uint64_t bytes)
{
  return (bytes + 7) & ~7UL;
}

/* Reads pieces, of `bytes` in all, of the thread's process; returns the number
 * of bytes before the first piece that is not mapped. */
static uint64_t
read_pieces (uint32_t tid, void * to, uint64_t bytes, const struct iovec * remote,
             unsigned long count)
{
  struct iovec local = { to, bytes };
  long result;
  if (hs_in_sandbox)
    return 0;
  result = system_call6 (SYS_process_vm_readv, (long) tid, (long) &local, 1, (long) remote,
                         (long) count, 0);
  return result < 0 ? 0 : (uint64_t) result;
}

/* Reads up to `bytes` of the thread's process; returns how many were mapped. */
static uint64_t
read_memory (uint32_t tid, void * to, uint64_t from, uint64_t bytes)
{
  /* An incomplete piece is not read at all, so each page is a piece. */
  struct iovec remote[HS_CAPTURE_STACK_MAX / PAGE + 2];
  unsigned long count = 0;
  for (uint64_t at = from, left = bytes; left != 0;)
  {
    uint64_t piece = PAGE - at % PAGE;
    if (piece > left)
      piece = left;
    remote[count].iov_base = (void *) at;
    remote[count].iov_len = piece;
    count++;
    at += piece;
    left -= piece;
  }
  return read_pieces (tid, to, bytes, remote, count);
}

/* The same, for other files. */
uint64_t
hs_read_memory (uint32_t tid, void * to, uint64_t from, uint64_t bytes)
{
  return read_memory (tid, to, from, bytes);
}

static void
copy (void * to, const void * from, uint64_t bytes)
{
  __asm__ volatile ("rep movsb"
                    : "+D" (to), "+S" (from), "+c" (bytes)
                    :
                    : "memory");
}

int
hs_captures (void)
{
  const struct hs_control * control = hs_runtime.control;
  return control->capture != 0 || control->capture_stack != 0 || control->watch_words != 0;
}

/* Whether texts are captured with each call of this function, regardless of
 * the settings for all others. */
int
hs_keeps_texts (const struct hs_probe * probe)
{
  for (unsigned n = 0; n != 6; n++)
    if (probe->texts[n] != 0)
      return 1;
  return 0;
}

/* Bytes of the text at `at`, up to a NUL. */
static uint64_t
terminated (uint32_t tid, uint64_t at)
{
  char text[HS_CAPTURE_TEXT_MAX];
  uint64_t bytes = read_memory (tid, text, at, sizeof text);
  for (uint64_t n = 0; n != bytes; n++)
    if (text[n] == 0)
      return n + 1; /* with the NUL, which shows its end to readers */
  return bytes;
}

/* Finds the text of argument register `index`. */
static void
find_text (struct hs_capture * capture, unsigned index, uint8_t how,
           const uint64_t * arguments)
{
  uint64_t at = arguments[index], bytes = 0;
  if (how == HS_TEXT_TERMINATED)
    bytes = terminated (capture->tid, at);
  else if (how == HS_TEXT_SLICE)
    bytes = index < 5 ? arguments[index + 1] : 0;
  else if (how == HS_TEXT_VIEW)
  {
    bytes = at;
    at = index < 5 ? arguments[index + 1] : 0;
  }
  else
  {
    uint64_t words[4];
    uint64_t got = read_memory (capture->tid, words, at, sizeof words);
    unsigned address = how >> HS_TEXT_ADDRESS_SHIFT & 3, length = how & HS_TEXT_LENGTH_MASK;
    uint64_t most = address > length ? address : length;
    if (got < 8 * (most + 1))
      return;
    capture->words_at[index] = at;
    capture->words_bytes[index] = (uint16_t) (got & ~7UL);
    at = words[address];
    bytes = words[length];
  }
  capture->text_at[index] = at;
  capture->text_bytes[index] =
      (uint16_t) (bytes < HS_CAPTURE_TEXT_MAX ? bytes : HS_CAPTURE_TEXT_MAX);
}

/* Bytes of a section with `bytes` in it. */
static uint64_t
section_bytes (uint64_t bytes)
{
  return SECTION_BYTES + padded (bytes);
}

/* A watched value, as the recorder wrote it. */
struct watch
{
  uint64_t base;     /* 0, or 1 + a register */
  uint64_t address;  /* counted from it */
  uint64_t steps;
  uint32_t offsets;  /* where their offsets begin, and then the number of bytes */
  uint64_t bytes;
  uint64_t how;      /* HS_WATCH_PARTLY, HS_WATCH_TEXT */
  uint64_t function; /* 0, or 1 + the function that must be entered */
  uint64_t caller;   /* HS_WATCH_CALLER_: it is a caller's, */
  uint64_t from, to; /* while it is called from before these addresses */
  const uint64_t * registers; /* what `base` is one of */
  uint64_t popped;   /* the increase of rsp once the function has returned there */
};

/* Where the next watched value begins, and how many precede it. */
struct place
{
  uint32_t word, number;
};

/* Reads the next watched value. */
static int
read_watch (const struct hs_capture * capture, struct place * place, struct watch * watch)
{
  const volatile uint64_t * words = hs_runtime.control->watch;
  uint32_t * at = &place->word;
  if (*at + 3 > capture->watch_words || place->number == HS_WATCHES)
    return 0;
  place->number++;
  uint64_t head = words[*at];
  watch->function = head >> HS_WATCH_FUNCTION_SHIFT & HS_WATCH_FUNCTION_MASK;
  watch->steps = head & HS_WATCH_STEPS_MASK;
  watch->base = head >> HS_WATCH_BASE_SHIFT & 0xff;
  watch->caller = head >> HS_WATCH_CALLER_SHIFT;
  watch->from = words[*at + 1];
  watch->to = words[*at + 2];
  watch->offsets = *at + (watch->caller != 0 ? 4 : 2);
  *at = watch->offsets + 1 + (uint32_t) watch->steps;
  if (watch->steps > MAX_STEPS || *at > capture->watch_words)
    return 0;
  watch->address = words[watch->offsets - 1];
  watch->bytes = words[*at - 1] & HS_WATCH_BYTES_MASK;
  if (watch->bytes > HS_CAPTURE_TEXT_MAX)
    watch->bytes = HS_CAPTURE_TEXT_MAX; /* what reading has room for */
  watch->how = words[*at - 1] & (HS_WATCH_PARTLY | HS_WATCH_TEXT);
  return 1;
}

static int
is_called_from (uint64_t return_address, const struct watch * watch)
{
  return return_address >= watch->from && return_address < watch->to;
}

/* Returns whether the function that is entered or left returns to a place
 * where the watched value exists. */
static int
returns_there (const struct hs_capture * capture, const struct watch * watch)
{
  uint64_t now = capture->function != 0 ? HS_WATCH_CALLER_ENTER : HS_WATCH_CALLER_LEAVE;
  return (watch->caller & now) && is_called_from (capture->return_address, watch);
}

/* 1 + the number of the innermost call that a function makes from a place
 * where the watched value exists, and whose registers are kept; 0: none. */
static uint16_t
called_there (const struct hs_frames * frames, uint64_t count, const struct watch * watch)
{
  if (watch->caller & HS_WATCH_CALLER_ENTER)
    for (uint64_t n = count; n != 0; n--)
      if (is_called_from (frames->frame[n - 1].return_address, watch))
        return (uint16_t) n;
  return 0;
}

/* Finds the next watched value that is captured now. */
static int
next_watch (const struct hs_capture * capture, struct place * place, struct watch * watch)
{
  while (read_watch (capture, place, watch))
  {
    watch->registers = capture->registers;
    watch->popped = 0;
    if (watch->caller == 0)
    {
      if (watch->function == 0 || watch->function == capture->function)
        return 1;
      continue;
    }
    if (returns_there (capture, watch))
    {
      watch->popped = capture->function != 0 ? 8 : 0;
      return 1;
    }
    uint16_t frame = capture->frame_of[place->number - 1];
    if (frame != 0)
    {
      watch->registers = capture->frames->frame[frame - 1].registers;
      watch->popped = 8;
      return 1;
    }
  }
  return 0;
}

/* Forgets the calls that were left before the call with this slot, on the
 * thread's own stack, is entered or left. */
static void
forget_frames (struct hs_frames * frames, uint64_t slot)
{
  uint64_t count = frames->count;
  while (count != 0 && frames->frame[count - 1].slot <= slot)
    count--;
  frames->count = count;
}

static int
has_pointees (const struct hs_probe * probe)
{
  uint16_t any = 0;
  if (!(hs_runtime.control->capture & HS_CAPTURE_POINTEES))
    return 0;
  for (unsigned n = 0; n != 6; n++)
    any |= probe->pointees[n];
  return any != 0;
}

/* Forgets the latest of the calls that end together with the one that is
 * entered by a jump, if they are many. */
static void
forget_at_slot (struct hs_frames * frames, uint64_t slot)
{
  uint64_t count = frames->count;
  if (count >= HS_FRAMES_AT_SLOT && frames->frame[count - HS_FRAMES_AT_SLOT].slot == slot)
    frames->count = count - 1;
}

/* Remembers the entered call if its caller has watched values, which are
 * captured until it is left, or if its arguments point to memory that is
 * captured when it is left. */
static void
remember_frame (const struct hs_capture * capture, struct hs_frames * frames)
{
  struct watch watch;
  struct place place = { 0, 0 };
  int is_wanted = has_pointees (capture->probe);
  while (read_watch (capture, &place, &watch))
    is_wanted |= (watch.caller & HS_WATCH_CALLER_ENTER)
              && is_called_from (capture->return_address, &watch);
  if (is_wanted)
    forget_at_slot (frames, capture->registers[RSP]);
  uint64_t count = frames->count;
  if (!is_wanted || count == HS_FRAMES)
    return;
  /* A signal handler that runs now appends its own calls after the last one,
   * and removes them again: so the place is filled first and counted last. */
  volatile struct hs_frame * frame = &frames->frame[count];
  frame->slot = capture->registers[RSP];
  frame->return_address = 0;
  frames->count = count + 1;
  frame->slot = capture->registers[RSP];
  copy ((void *) frame->registers, capture->registers, sizeof frame->registers);
  copy ((void *) frame->pointees, capture->probe->pointees, sizeof frame->pointees);
  frame->return_address = capture->return_address;
}

/* Returns whether it consists only of registers, which are captured with it. */
static int
is_in_registers (const struct watch * watch)
{
  return watch->steps == 0 && watch->bytes == 0;
}

static uint64_t
watch_bytes (const struct hs_capture * capture)
{
  uint64_t bytes = 0;
  struct watch watch;
  struct place place = { 0, 0 };
  while (next_watch (capture, &place, &watch))
  {
    if (is_in_registers (&watch))
      continue;
    bytes += watch.steps * section_bytes (8) + section_bytes (watch.bytes);
    if (watch.how != 0)
      bytes += SECTION_BYTES; /* behind what there is */
  }
  return bytes;
}

/* The thread pointer; 0 before the thread has one. */
static uint64_t
thread_pointer (void)
{
  uint64_t found = 0;
  if (hs_in_sandbox
      || system_call (SYS_arch_prctl, 0x1003 /* ARCH_GET_FS */, (long) &found, 0, 0) < 0)
    return 0;
  return found;
}

/* Finds what else is captured for watched values. */
static void
look_at_watches (struct hs_capture * capture)
{
  struct watch watch;
  struct place place = { 0, 0 };
  int of_thread = 0;
  while (next_watch (capture, &place, &watch))
  {
    of_thread |= watch.base == HS_WATCH_THREAD_BASE;
    /* Readers need them to find the caller's variables. */
    if (watch.caller != 0 && returns_there (capture, &watch))
      capture->with_registers = HS_CAPTURE_REGISTERS;
  }
  capture->thread_pointer = of_thread ? thread_pointer () : 0;
}

static uint64_t
watch_address (const struct hs_capture * capture, const struct watch * watch)
{
  if (watch->base == HS_WATCH_THREAD_BASE)
    return capture->thread_pointer != 0 ? capture->thread_pointer + watch->address : 0;
  if (watch->base == 0 || watch->base > HS_CAPTURE_WORDS)
    return watch->address;
  uint64_t popped = watch->base == 1 + RSP ? watch->popped : 0;
  return watch->registers[watch->base - 1] + popped + watch->address;
}

/* Returns whether the thread's own stack has these bytes, at rsp or above. */
static int
is_on_stack (const struct hs_capture * capture, uint64_t at, uint64_t bytes)
{
  return capture->is_own_stack && at >= capture->registers[RSP]
      && at <= capture->stack_high && bytes <= capture->stack_high - at;
}

/* Adds the memory that the arguments of a call point to; it was entered with
 * these registers. */
static void
add_pointees (struct hs_capture * capture, const uint16_t * pointees,
              const uint64_t * registers)
{
  if (!(hs_runtime.control->capture & HS_CAPTURE_POINTEES))
    return;
  for (unsigned n = 0; n != 6; n++)
  {
    uint64_t at = registers[argument_registers[n]];
    uint64_t bytes = pointees[n] & HS_POINTEE_BYTES_MASK;
    int is_later = (pointees[n] & HS_POINTEE_RESULT) && capture->function != 0;
    unsigned count = capture->pointee_count, same = 0;
    if (bytes > HS_CAPTURE_TEXT_MAX)
      bytes = HS_CAPTURE_TEXT_MAX;
    if (bytes == 0 || is_later || at < PAGE || count == HS_POINTEES)
      continue;
    if (pointees[n] & HS_POINTEE_TEXT)
      bytes = terminated (capture->tid, at);
    if (bytes == 0)
      continue;
    while (same != count
           && (capture->pointee_at[same] != at || capture->pointee_bytes[same] != bytes))
      same++;
    if (same != count)
      continue;
    capture->pointee_at[count] = at;
    capture->pointee_bytes[count] = (uint16_t) bytes;
    capture->pointee_count = count + 1;
    capture->payload += section_bytes (bytes);
  }
}

/* Adds the memory that the arguments of the calls left with this slot pointed
 * to. */
static void
add_pointees_of_left (struct hs_capture * capture, const struct hs_frames * frames,
                      uint64_t slot)
{
  for (uint64_t n = frames->count; n != 0; n--)
  {
    const struct hs_frame * frame = &frames->frame[n - 1];
    if (frame->slot > slot)
      break;
    if (frame->slot == slot)
      add_pointees (capture, frame->pointees, frame->registers);
  }
}

/* Returns whether any capture requires remembering open calls. */
static int
remembers_calls (const struct hs_capture * capture)
{
  return capture->watch_words != 0
      || (hs_runtime.control->capture & HS_CAPTURE_POINTEES) != 0;
}

/* Finds the enclosing calls whose callers have watched values. */
static void
look_at_frames (struct hs_capture * capture, const struct hs_local * local)
{
  struct hs_frames * frames = (struct hs_frames *) local->end;
  uint64_t rsp = capture->registers[RSP];
  struct watch watch;
  struct place place = { 0, 0 };
  if (!remembers_calls (capture))
    return;
  if (frames->count > HS_FRAMES)
    frames->count = 0;
  /* Other stacks lie anywhere: their contents say nothing about this one. */
  if (capture->is_own_stack && capture->function == 0)
  {
    add_pointees_of_left (capture, frames, rsp - 8);
    forget_frames (frames, rsp - 8);
  }
  else if (capture->is_own_stack)
  {
    /* By a jump: the one before ends with it. */
    forget_frames (frames, capture->is_tail ? rsp - 8 : rsp);
    remember_frame (capture, frames);
  }
  uint64_t count = frames->count;
  capture->frames = frames;
  while (read_watch (capture, &place, &watch))
    capture->frame_of[place.number - 1] =
        watch.caller != 0 ? called_there (frames, count, &watch) : 0;
}

/* Returns whether all memory from rsp to the end of the thread's own stack is
 * mapped. The lower end of that stack is unknown: threads may have less than
 * the default, and other stacks may lie below. A hole, such as the guard page
 * of a stack, separates them. */
static int
is_one_block (struct hs_local * local, uint64_t rsp)
{
  uint64_t page = rsp & ~(PAGE - 1);
  if (local->block_low == 0)
    local->block_low = (local->stack_high - 1) & ~(PAGE - 1);
  while (page < local->block_low && page >= local->hole)
  {
    char bytes[PROBED];
    struct iovec from[PROBED];
    unsigned long count = 0;
    uint64_t at = local->block_low;
    for (; count != PROBED && at != page; count++)
    {
      at -= PAGE;
      from[count].iov_base = (void *) at;
      from[count].iov_len = 1;
    }
    uint64_t got = read_pieces (local->tid, bytes, count, from, count);
    local->block_low -= got * PAGE;
    if (got != count)
      local->hole = local->block_low;
  }
  return page >= local->block_low;
}

/* How many bytes from `at` on are certainly mapped: on the thread's own stack,
 * whose used end is `rsp`; 0: it lies elsewhere. */
uint64_t
hs_own_stack_bytes (struct hs_local * local, uint64_t rsp, uint64_t at)
{
  int is_own = rsp >= local->stack_low && rsp < local->stack_high
            && at >= rsp && at < local->stack_high && is_one_block (local, rsp);
  return is_own ? local->stack_high - at : 0;
}

/* Computes the size of the captures chosen so far. */
static void
size_capture (struct hs_capture * capture, struct hs_local * local, uint64_t rsp)
{
  const struct hs_control * control = hs_runtime.control;
  uint64_t stack = control->capture_stack;
  if (stack > HS_CAPTURE_STACK_MAX)
    stack = HS_CAPTURE_STACK_MAX;
  capture->stack_is_safe = rsp >= local->stack_low && rsp < local->stack_high;
  capture->stack_high = local->stack_high;
  if (capture->stack_is_safe && stack > local->stack_high - rsp)
    stack = local->stack_high - rsp;
  capture->stack = stack & ~7UL;
  if (capture->stack != 0)
    capture->payload += section_bytes (capture->stack);
  /* More values may be watched before this is written: those begin with the
   * next capture. */
  capture->watch_words = control->watch_words;
  /* A sandbox may forbid the check, which is needed only for these. */
  capture->is_own_stack = remembers_calls (capture) && capture->stack_is_safe
                        && is_one_block (local, rsp);
  look_at_frames (capture, local);
  capture->payload += watch_bytes (capture);
  capture->with_registers = control->capture & HS_CAPTURE_REGISTERS;
  look_at_watches (capture);
  if (capture->with_registers != 0)
    capture->payload += 8 * HS_CAPTURE_WORDS;
  if (capture->thread_pointer != 0)
    capture->payload += section_bytes (8);
  /* Most calls do not return to where a caller's variable is watched. */
  capture->bytes = capture->payload != 0 ? 16 + capture->payload : 0;
}

/* The address that the word at `slot` returns to, hooked or not. */
static uint64_t
returns_to (uint64_t slot)
{
  uint64_t found = *(const uint64_t *) slot;
  if (found == (uint64_t) hs_leave || found == (uint64_t) hs_leave_xmm)
    return *(const uint64_t *) (slot ^ 1UL << HS_SHADOW_BIT);
  return found;
}

void
hs_capture_enter (struct hs_capture * capture, struct hs_local * local,
                  const struct hs_saved * saved, const struct hs_probe * probe)
{
  uint64_t rsp = (uint64_t) &saved->return_address;
  const uint64_t registers[HS_CAPTURE_WORDS] = {
    saved->rax, saved->rdx, saved->rcx, saved->rbx, saved->rsi, saved->rdi,
    saved->rbp, rsp,        saved->r8,  saved->r9,  saved->r10, saved->r11,
    saved->r12, saved->r13, saved->r14, saved->r15,
  };
  const uint64_t arguments[6] = {
    saved->rdi, saved->rsi, saved->rdx, saved->rcx, saved->r8, saved->r9,
  };
  copy (capture->registers, registers, sizeof registers);
  capture->tid = local->tid;
  capture->function = 1 + ((probe->word1 >> 8 & 0xfff) | probe->word2 >> 48 << 12);
  capture->return_address = returns_to (rsp);
  capture->probe = probe;
  capture->is_tail = capture->return_address != saved->return_address;
  capture->pointee_count = 0;
  capture->payload = 0;
  add_pointees (capture, probe->pointees, registers);
  for (unsigned n = 0; n != 6; n++)
  {
    capture->text_bytes[n] = capture->words_bytes[n] = 0;
    if (probe->texts[n] == 0)
      continue;
    find_text (capture, n, probe->texts[n], arguments);
    if (capture->words_bytes[n] != 0)
      capture->payload += section_bytes (capture->words_bytes[n]);
    if (capture->text_bytes[n] != 0)
      capture->payload += section_bytes (capture->text_bytes[n]);
  }
  size_capture (capture, local, rsp);
}

void
hs_capture_leave (struct hs_capture * capture, struct hs_local * local,
                  const struct hs_saved_leave * saved)
{
  uint64_t rsp = (uint64_t) &saved->slot + 8;
  const uint64_t registers[HS_CAPTURE_WORDS] = {
    saved->rax, saved->rdx, saved->rcx, saved->rbx, saved->rsi, saved->rdi,
    saved->rbp, rsp,        saved->r8,  saved->r9,  saved->r10, saved->r11,
    saved->r12, saved->r13, saved->r14, saved->r15,
  };
  copy (capture->registers, registers, sizeof registers);
  capture->tid = local->tid;
  capture->function = 0;
  capture->return_address = *(const uint64_t *) ((rsp - 8) ^ 1UL << HS_SHADOW_BIT);
  capture->probe = NULL;
  capture->pointee_count = 0;
  capture->payload = 0;
  for (unsigned n = 0; n != 6; n++)
    capture->text_bytes[n] = capture->words_bytes[n] = 0;
  size_capture (capture, local, rsp);
}

/* Returns whether a section of this many bytes fits, and leaves either no room
 * or enough for another section. All fit, unless a signal handler has changed
 * the captures meanwhile. */
static int
fits (const uint64_t * words, const uint64_t * end, uint64_t bytes)
{
  uint64_t room = (uint64_t) (end - words) * 8;
  return bytes == room || bytes + SECTION_BYTES <= room;
}

/* Writes a section; one whose bytes cannot be read has no address. */
static uint64_t *
section (uint64_t * words, const uint64_t * limit, const struct hs_capture * capture,
         uint64_t at, uint64_t bytes, int is_safe)
{
  if (!fits (words, limit, section_bytes (bytes)))
    return words;
  words[1] = bytes;
  words[1 + padded (bytes) / 8] = 0;
  if (is_safe || is_on_stack (capture, at, bytes))
    copy (words + 2, (const void *) at, bytes);
  else if (read_memory (capture->tid, words + 2, at, bytes) != bytes)
    at = 0;
  words[0] = at;
  return words + 2 + padded (bytes) / 8;
}

/* Writes the available bytes, for a text up to its NUL, followed by an empty
 * section. */
static uint64_t *
section_partly (uint64_t * words, const uint64_t * limit, const struct hs_capture * capture,
                uint64_t at, const struct watch * watch)
{
  if (!fits (words, limit, section_bytes (watch->bytes) + SECTION_BYTES))
    return words;
  uint8_t * bytes = (uint8_t *) (words + 2);
  uint64_t * end = words + (section_bytes (watch->bytes) + SECTION_BYTES) / 8;
  uint64_t got = at != 0 ? read_memory (capture->tid, bytes, at, watch->bytes) : 0;
  if (watch->how & HS_WATCH_TEXT)
    for (uint64_t n = 0; n != got; n++)
      if (bytes[n] == 0)
        got = n + 1;
  for (uint8_t * rest = bytes + got; rest != (uint8_t *) end; rest++)
    *(volatile uint8_t *) rest = 0;
  words[0] = got != 0 ? at : 0;
  words[1] = got;
  words += 2 + padded (got) / 8;
  words[1] = (uint64_t) (end - words - 2) * 8;
  return end;
}

static uint64_t *
write_watches (const struct hs_capture * capture, uint64_t * words, const uint64_t * limit)
{
  const volatile uint64_t * offsets = hs_runtime.control->watch;
  struct watch watch;
  if (capture->thread_pointer != 0)
  {
    uint64_t * length = words + 1;
    uint64_t * behind = section (words, limit, capture, capture->thread_pointer, 8, 0);
    if (behind != words)
      *length |= HS_SECTION_THREAD;
    words = behind;
  }
  struct place place = { 0, 0 };
  while (next_watch (capture, &place, &watch))
  {
    if (is_in_registers (&watch))
      continue;
    uint64_t at = watch_address (capture, &watch);
    for (uint64_t step = 0; step != watch.steps; step++)
    {
      uint64_t * behind = section (words, limit, capture, at, 8, 0);
      if (behind == words)
        return words;
      words = behind;
      at = words[-3] != 0 ? words[-1] + offsets[watch.offsets + step] : 0;
    }
    words = watch.how != 0 ? section_partly (words, limit, capture, at, &watch)
                           : section (words, limit, capture, at, watch.bytes, 0);
  }
  return words;
}

void
hs_capture_write (const struct hs_capture * capture, uint64_t * words, uint64_t ticks)
{
  words[0] = ticks;
  words[1] = HS_CAPTURE | capture->with_registers << 8 | capture->payload << 16;
  words += 2;
  const uint64_t * limit = words + capture->payload / 8;
  if (capture->with_registers != 0)
  {
    copy (words, capture->registers, sizeof capture->registers);
    words += HS_CAPTURE_WORDS;
  }
  if (capture->stack != 0)
    words = section (words, limit, capture, capture->registers[RSP], capture->stack,
                     (int) capture->stack_is_safe);
  for (unsigned n = 0; n != 6; n++)
  {
    if (capture->words_bytes[n] != 0)
      words = section (words, limit, capture, capture->words_at[n],
                       capture->words_bytes[n], 0);
    if (capture->text_bytes[n] != 0)
      words = section (words, limit, capture, capture->text_at[n], capture->text_bytes[n],
                       0);
  }
  for (unsigned n = 0; n != capture->pointee_count; n++)
    words = section (words, limit, capture, capture->pointee_at[n],
                     capture->pointee_bytes[n], 0);
  words = write_watches (capture, words, limit);
  if (words != limit)
  {
    words[0] = 0; /* nothing that could be read */
    words[1] = (uint64_t) (limit - words - 2) * 8;
  }
}
