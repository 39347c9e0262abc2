/* Values of all kinds, seen by as many functions as there are conditions to try: CHECKS is a list of C(number). */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum color { RED, GREEN = 5, BLUE = 9 };
struct point { short x, y; };
struct item
{
  int id;
  unsigned char kind;
  signed char small;
  short level;
  long weight;
  unsigned long mask;
  double price;
  float ratio;
  const char * name;
  struct item * next;
  unsigned low : 5;
  int flags : 3;
  enum color color;
  _Bool ok;
  char letter;
  int list[4];
  struct point at;
  union { int a; float b; } either;
};

volatile long sink;
static unsigned counter;
uint64_t global = 7;
static struct item items[64];

#define C(number) \
  __attribute__ ((noipa)) static void check_##number (struct item * p, int n, double d, float f, unsigned u) \
  { \
    long local = n * 3L - 7; \
    sink += local + p->id + (long) d + (long) f + u; \
    sink ^= p->weight; \
    sink += number; /* or they would be one */ \
  }
CHECKS
#undef C

static void
on_alarm (int signal)
{
  sink += signal;
}

int
main (int argc, char ** argv)
{
  int rounds = argc > 1 ? atoi (argv[1]) : 1;
  unsigned random = 12345;
  signal (SIGUSR1, on_alarm);
  for (int i = 0; i < 64; i++)
  {
    struct item * p = &items[i];
    random = random * 1103515245 + 12345;
    p->id = i - 20;
    p->kind = random >> 8;
    p->small = random >> 16;
    p->level = random >> 3;
    p->weight = (long) random * (i % 2 ? -1 : 1);
    p->mask = (unsigned long) random << 33 | random;
    p->price = (int) (random % 2000 - 1000) / 8.0;
    p->ratio = (random % 100) / 7.0f;
    p->name = i % 7 == 0 ? NULL : i % 7 == 1 ? (const char *) 16 : "item";
    p->next = i % 5 == 0 ? NULL : i % 11 == 3 ? (struct item *) 8 : &items[(i + 1) % 64];
    p->low = random;
    p->flags = random >> 5;
    p->color = i % 3 == 0 ? RED : i % 3 == 1 ? GREEN : BLUE;
    p->ok = random >> 9;
    p->letter = 'a' + i % 26;
    for (int k = 0; k < 4; k++)
      p->list[k] = (int) (random >> k);
    p->at.x = i;
    p->at.y = -i;
    p->either.b = p->ratio;
  }
  for (int round = 0; round < rounds; round++)
    for (int i = 0; i < 64; i++)
    {
      struct item * p = &items[i];
      counter++;
      global += i;
      if (i % 16 == 0)
        raise (SIGUSR1);
#define C(number) check_##number (p, i - 30, p->price, p->ratio, counter);
      CHECKS
#undef C
    }
  printf ("%ld %lu\n", sink, global);
  return 0;
}
