/* Cases whose rings agent::shared::Shared reads, in native.rs, which talks to
 * them by lines. */
#define _GNU_SOURCE
#include "driver.h"

#include <pthread.h>
#include <string.h>

static void * stub;

static void
call_work (uint64_t n)
{
  EQUAL (shim (n, 1, 2, 3, 4, 5, stub), n * 3 + 1);
}

static void
wait_for_line (void)
{
  char line[64];
  CHECK (fgets (line, sizeof (line), stdin) != NULL);
}

static void
say (const char * what)
{
  puts (what);
  fflush (stdout);
}

/* Several laps. */
void
case_with_recorder_reads_every_record (void)
{
  stub = traced ((void *) work, 9, 0, 0);
  for (uint64_t n = 0; n < EXPECTED_CALLS; n++)
    call_work (n);
}

/* Nobody reads; it ends only if the recorder's end is noticed. */
void
case_with_recorder_dies (void)
{
  stub = traced ((void *) work, 9, 0, 0);
  call_work (0);
  say ("recording");
  for (uint64_t n = 0; n < EXPECTED_CALLS; n++)
    call_work (n);
}

static void *
call_once (void * n)
{
  call_work ((uint64_t) n);
  return NULL;
}

void
case_with_recorder_gives_rings_again (void)
{
  stub = traced ((void *) work, 9, 0, 0);
  for (uint64_t n = 0; n < 3; n++)
  {
    pthread_t thread;
    wait_for_line ();
    CHECK (pthread_create (&thread, NULL, call_once, (void *) n) == 0);
    CHECK (pthread_join (thread, NULL) == 0);
    say ("called");
  }
}

static int originals_called;

static void
count_original (void)
{
  originals_called++;
}

void
case_with_recorder_answers_modules (void)
{
  void (* changed) (void) = (void (*) (void)) replacement ("_dl_debug_state", (void *) count_original);
  changed ();
  EQUAL (originals_called, 1);
  EQUAL (*(volatile uint64_t *) EXPECTED_RESERVED, 0);
  say ("changed");
  changed ();
  EQUAL (originals_called, 2);
}
