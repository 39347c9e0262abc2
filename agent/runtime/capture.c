/* What is captured besides with an enter or leave: registers, a piece of the
 * stack, texts behind arguments, watched values.
 *
 * The rules of runtime.c hold. Memory that may not be there is read by the
 * kernel (process_vm_readv), which says so instead of raising a signal; the
 * thread's own stack, from rsp on, is read directly. A capture is sized first and written
 * after its room is known; what has gone meanwhile is left out.
 */
#include "runtime.h"

#include <sys/syscall.h>
#include <sys/uio.h>

#define PAGE 4096UL
#define SECTION_BYTES 16 /* an address and a length */
#define MAX_STEPS 8

static uint64_t
padded (uint64_t bytes)
{
  return (bytes + 7) & ~7UL;
}

/* Reads up to `bytes` of the thread's process; returns how many were there. */
static uint64_t
read_memory (uint32_t tid, void * to, uint64_t from, uint64_t bytes)
{
  struct iovec local = { to, bytes };
  /* A piece that is not whole is not read at all: one per page. */
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
  register long remote_at __asm__ ("r10") = (long) remote;
  register long remote_count __asm__ ("r8") = (long) count;
  register long flags __asm__ ("r9") = 0;
  long result;
  __asm__ volatile ("syscall"
                    : "=a" (result)
                    : "a" (SYS_process_vm_readv), "D" ((long) tid),
                      "S" (&local), "d" (1L), "r" (remote_at),
                      "r" (remote_count), "r" (flags)
                    : "rcx", "r11", "memory");
  return result < 0 ? 0 : (uint64_t) result;
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

/* Bytes of the text at `at`, up to a NUL. */
static uint64_t
terminated (uint32_t tid, uint64_t at)
{
  char text[HS_CAPTURE_TEXT_MAX];
  uint64_t bytes = read_memory (tid, text, at, sizeof text);
  for (uint64_t n = 0; n != bytes; n++)
    if (text[n] == 0)
      return n + 1; /* with the NUL: readers see where it ends */
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
  uint64_t function; /* 0, or 1 + the one that has to be entered */
  uint64_t caller;   /* HS_WATCH_CALLER_: it is a caller's, */
  uint64_t from, to; /* while it is called from before these addresses */
  const uint64_t * registers; /* what `base` is one of */
};

/* Reads the watched value that begins with word `*at`. */
static int
read_watch (const struct hs_capture * capture, uint32_t * at, struct watch * watch)
{
  const volatile uint64_t * words = hs_runtime.control->watch;
  if (*at + 3 > capture->watch_words)
    return 0;
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

/* Tells whether a function is left that returns to where the watched value is
 * there. */
static int
returns_there (const struct hs_capture * capture, const struct watch * watch)
{
  return capture->function == 0 && (watch->caller & HS_WATCH_CALLER_LEAVE)
      && is_called_from (capture->return_address, watch);
}

/* The innermost call that a function makes from where the watched value is
 * there, and whose registers are kept. */
static const struct hs_frame *
called_there (const struct hs_capture * capture, const struct watch * watch)
{
  if (capture->frames == NULL || !(watch->caller & HS_WATCH_CALLER_ENTER))
    return NULL;
  for (uint64_t n = capture->frame_count; n != 0; n--)
    if (is_called_from (capture->frames->frame[n - 1].return_address, watch))
      return &capture->frames->frame[n - 1];
  return NULL;
}

/* Finds the next watched value from word `*at` on that is captured now. */
static int
next_watch (const struct hs_capture * capture, uint32_t * at, struct watch * watch)
{
  while (read_watch (capture, at, watch))
  {
    watch->registers = capture->registers;
    if (watch->caller == 0)
    {
      if (watch->function == 0 || watch->function == capture->function)
        return 1;
      continue;
    }
    if (returns_there (capture, watch))
      return 1;
    const struct hs_frame * frame = called_there (capture, watch);
    if (frame != NULL)
    {
      watch->registers = frame->registers;
      return 1;
    }
  }
  return 0;
}

/* Forgets the calls that have been left by the time that the call with this
 * slot is entered or left, which lies on the thread's own stack. */
static void
forget_frames (struct hs_frames * frames, uint64_t slot)
{
  uint64_t count = frames->count;
  while (count != 0 && frames->frame[count - 1].slot <= slot)
    count--;
  frames->count = count;
}

/* Remembers the call that is entered if its caller has something watched, which
 * is captured until it is left. */
static void
remember_frame (const struct hs_capture * capture, struct hs_frames * frames)
{
  struct watch watch;
  int is_watched = 0;
  for (uint32_t at = 0; read_watch (capture, &at, &watch);)
    is_watched |= (watch.caller & HS_WATCH_CALLER_ENTER)
               && is_called_from (capture->return_address, &watch);
  if (!is_watched || frames->count == HS_FRAMES)
    return;
  struct hs_frame * frame = &frames->frame[frames->count];
  frame->slot = capture->registers[7];
  frame->return_address = capture->return_address;
  copy (frame->registers, capture->registers, sizeof frame->registers);
  /* As the caller has it: the return address has not been popped. */
  frame->registers[7] += 8;
  frames->count++;
}

/* Tells whether it is made of registers alone, which are captured with it. */
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
  for (uint32_t at = 0; next_watch (capture, &at, &watch);)
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
  long result;
  __asm__ volatile ("syscall"
                    : "=a" (result)
                    : "a" (SYS_arch_prctl), "D" (0x1003L /* ARCH_GET_FS */), "S" (&found)
                    : "rcx", "r11", "memory");
  return result < 0 ? 0 : found;
}

/* Finds what else is captured for watched values. */
static void
look_at_watches (struct hs_capture * capture)
{
  struct watch watch;
  int of_thread = 0;
  for (uint32_t at = 0; next_watch (capture, &at, &watch);)
  {
    of_thread |= watch.base == HS_WATCH_THREAD_BASE;
    /* Readers need them to find the caller's variables. */
    if (watch.caller != 0 && is_called_from (capture->return_address, &watch))
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
  return watch->registers[watch->base - 1] + watch->address;
}

/* Tells whether the thread's own stack has these bytes, at rsp or above. */
static int
is_on_stack (const struct hs_capture * capture, uint64_t at, uint64_t bytes)
{
  return capture->stack_is_safe && at >= capture->registers[7]
      && at <= capture->stack_high && bytes <= capture->stack_high - at;
}

/* Finds the calls around whose callers have something watched. */
static void
look_at_frames (struct hs_capture * capture, const struct hs_local * local)
{
  struct hs_frames * frames = (struct hs_frames *) local->end;
  uint64_t rsp = capture->registers[7];
  capture->frames = NULL;
  if (capture->watch_words == 0)
    return;
  /* Other stacks lie anywhere: what is on them tells nothing of this one. */
  if (capture->stack_is_safe)
  {
    forget_frames (frames, capture->function != 0 ? rsp : rsp - 8);
    if (capture->function != 0)
      remember_frame (capture, frames);
  }
  capture->frames = frames;
  capture->frame_count = frames->count;
}

/* Sizes what has been chosen so far. */
static void
size_capture (struct hs_capture * capture, const struct hs_local * local, uint64_t rsp)
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
  /* More may be watched before this is written: that is for the next one. */
  capture->watch_words = control->watch_words;
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
hs_capture_enter (struct hs_capture * capture, const struct hs_local * local,
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
  capture->payload = 0;
  for (unsigned n = 0; n != 6; n++)
  {
    capture->text_bytes[n] = capture->words_bytes[n] = 0;
    if (!(hs_runtime.control->capture & HS_CAPTURE_TEXTS) || probe->texts[n] == 0)
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
hs_capture_leave (struct hs_capture * capture, const struct hs_local * local,
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
  capture->payload = 0;
  for (unsigned n = 0; n != 6; n++)
    capture->text_bytes[n] = capture->words_bytes[n] = 0;
  size_capture (capture, local, rsp);
}

/* Writes a section; one whose bytes cannot be read has no address. */
static uint64_t *
section (uint64_t * words, const struct hs_capture * capture, uint64_t at,
         uint64_t bytes)
{
  words[1] = bytes;
  words[1 + padded (bytes) / 8] = 0;
  if (is_on_stack (capture, at, bytes))
    copy (words + 2, (const void *) at, bytes);
  else if (read_memory (capture->tid, words + 2, at, bytes) != bytes)
    at = 0;
  words[0] = at;
  return words + 2 + padded (bytes) / 8;
}

/* Writes as many bytes as there are, of a text up to its NUL, and behind them
 * a section that says nothing. */
static uint64_t *
section_partly (uint64_t * words, const struct hs_capture * capture, uint64_t at,
                const struct watch * watch)
{
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
write_watches (const struct hs_capture * capture, uint64_t * words)
{
  const volatile uint64_t * offsets = hs_runtime.control->watch;
  struct watch watch;
  if (capture->thread_pointer != 0)
  {
    uint64_t * length = words + 1;
    words = section (words, capture, capture->thread_pointer, 8);
    *length |= HS_SECTION_THREAD;
  }
  for (uint32_t i = 0; next_watch (capture, &i, &watch);)
  {
    if (is_in_registers (&watch))
      continue;
    uint64_t at = watch_address (capture, &watch);
    for (uint64_t step = 0; step != watch.steps; step++)
    {
      words = section (words, capture, at, 8);
      at = words[-3] != 0 ? words[-1] + offsets[watch.offsets + step] : 0;
    }
    words = watch.how != 0 ? section_partly (words, capture, at, &watch)
                           : section (words, capture, at, watch.bytes);
  }
  return words;
}

void
hs_capture_write (const struct hs_capture * capture, uint64_t * words, uint64_t ticks)
{
  words[0] = ticks;
  words[1] = HS_CAPTURE | capture->with_registers << 8 | capture->payload << 16;
  words += 2;
  if (capture->with_registers != 0)
  {
    copy (words, capture->registers, sizeof capture->registers);
    words += HS_CAPTURE_WORDS;
  }
  if (capture->stack != 0)
    words = section (words, capture, capture->registers[7], capture->stack);
  for (unsigned n = 0; n != 6; n++)
  {
    if (capture->words_bytes[n] != 0)
      words = section (words, capture, capture->words_at[n], capture->words_bytes[n]);
    if (capture->text_bytes[n] != 0)
      words = section (words, capture, capture->text_at[n], capture->text_bytes[n]);
  }
  write_watches (capture, words);
}
