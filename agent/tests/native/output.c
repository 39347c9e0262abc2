/* The replaced functions that write or start a program: what really happened
 * is recorded, errno and results are the original's. */
#define _GNU_SOURCE
#include "driver.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

static ssize_t answer;

static ssize_t
answer_write (int fd, const void * bytes, size_t length)
{
  (void) fd, (void) bytes, (void) length;
  errno = 77;
  return answer;
}

static ssize_t
answer_writev (int fd, const struct iovec * parts, int count)
{
  (void) fd, (void) parts, (void) count;
  errno = 77;
  return answer;
}

static ssize_t (* write_it) (int, const void *, size_t);
static ssize_t (* writev_it) (int, const struct iovec *, int);
static struct tape tape;
static char text[10000];

/* What is there from before must not show in the padding. */
static void
soil_ring (void)
{
  memset ((void *) ring_head (my_ring ()), 0xff, 2 * sizeof (text));
}

static void
expect_bytes (uint64_t kind, uint64_t low, const char * bytes, uint64_t length)
{
  uint64_t * record = take (&tape);
  EQUAL (record[1], length << WIRE_LEN_SHIFT | low << WIRE_VALUE_SHIFT | kind);
  char padded[sizeof (text) + 8] = { 0 };
  memcpy (padded, bytes, length);
  CHECK (memcmp (record + WIRE_BYTES_WORDS, padded, (length + 7) & ~7UL) == 0);
}

static void
write_and_expect (int fd, ssize_t result, uint64_t length, uint64_t recorded)
{
  soil_ring ();
  answer = result;
  errno = 0;
  EQUAL (write_it (fd, text, length), result);
  EQUAL (errno, 77);
  drain (&tape, my_ring ());
  for (uint64_t at = 0; at < recorded; at += 4096)
    expect_bytes (WIRE_KIND_OUTPUT, (uint64_t) fd, text + at, recorded - at < 4096 ? recorded - at : 4096);
  CHECK (at_end (&tape), "%lu of %lu bytes to %d", recorded, length, fd);
}

static void
writev_and_expect (ssize_t result, const uint64_t * recorded)
{
  const struct iovec parts[] = { { text, 10 }, { text + 10, 0 }, { text + 20, 5000 }, { text + 9, 3 } };
  soil_ring ();
  answer = result;
  errno = 0;
  EQUAL (writev_it (2, parts, 4), result);
  EQUAL (errno, 77);
  drain (&tape, my_ring ());
  for (int i = 0; i < 4; i++)
    for (uint64_t at = 0; at < recorded[i]; at += 4096)
      expect_bytes (WIRE_KIND_OUTPUT, 2, (char *) parts[i].iov_base + at,
                    recorded[i] - at < 4096 ? recorded[i] - at : 4096);
  CHECK (at_end (&tape));
}

static void
get_ring (void)
{
  shim (0, 0, 0, 0, 0, 0, traced ((void *) work, 1, 0, 0));
  drain (&tape, my_ring ());
  tape.next = tape.count;
  for (size_t i = 0; i < sizeof (text); i++)
    text[i] = (char) (i * 7 + 1);
}

void
case_output_is_recorded_as_it_was_written (void)
{
  write_it = (ssize_t (*) (int, const void *, size_t)) replacement ("write", (void *) answer_write);
  writev_it = (ssize_t (*) (int, const struct iovec *, int)) replacement ("writev", (void *) answer_writev);
  get_ring ();
  for (uint64_t length = 1; length < 40; length++)
    write_and_expect (1 + (int) length % 2, (ssize_t) length, length, length);
  write_and_expect (1, 4096, 4096, 4096);
  write_and_expect (1, 4097, 4097, 4097);
  write_and_expect (2, sizeof (text), sizeof (text), sizeof (text));
  write_and_expect (1, 3, 100, 3);
  write_and_expect (1, -1, 100, 0);
  write_and_expect (1, 0, 0, 0);
  write_and_expect (0, 5, 5, 0);
  write_and_expect (3, 5, 5, 0);
  write_and_expect (257, 5, 5, 0);
  writev_and_expect (5013, (uint64_t[]) { 10, 0, 5000, 3 });
  writev_and_expect (5012, (uint64_t[]) { 10, 0, 5000, 2 });
  writev_and_expect (4, (uint64_t[]) { 4, 0, 0, 0 });
  writev_and_expect (0, (uint64_t[]) { 0, 0, 0, 0 });
  writev_and_expect (-1, (uint64_t[]) { 0, 0, 0, 0 });
}

static int
refuse_execve (const char * path, char * const * argv, char * const * environment)
{
  (void) path, (void) argv, (void) environment;
  errno = 77;
  return -1;
}

void
case_exec_is_recorded_before (void)
{
  int (* execve_it) (const char *, char * const *, char * const *) =
      (int (*) (const char *, char * const *, char * const *)) replacement ("execve", (void *) refuse_execve);
  const uint64_t lengths[] = { 0, 1, 8, 9, 3999, 4000, 5000 };
  get_ring ();
  memset (text, 'p', sizeof (text));
  for (size_t i = 0; i < sizeof (lengths) / sizeof (lengths[0]); i++)
  {
    soil_ring ();
    text[lengths[i]] = 0;
    EQUAL (execve_it (text, NULL, NULL), -1);
    EQUAL (errno, 77);
    text[lengths[i]] = 'p';
    drain (&tape, my_ring ());
    expect_bytes (WIRE_KIND_EXEC, 0, text, lengths[i] < 4000 ? lengths[i] : 4000);
    expect_bytes (WIRE_KIND_EXEC, 77, "", 0);
  }
  EQUAL (execve_it (NULL, NULL, NULL), -1);
  drain (&tape, my_ring ());
  expect_bytes (WIRE_KIND_EXEC, 77, "", 0);
  CHECK (at_end (&tape));
}
