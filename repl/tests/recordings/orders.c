// An evening in a shop: orders are priced in two threads, one of which is refused by a jump out of its price. What the
// transcripts look at: globals, the heap, texts, members, an array; a helper that is not recorded; a signal.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct order {
  int id;
  int pieces;
  double each;
  const char *customer;
};

int sold;
double takings;
const char shop[] = "Ada's";
static __thread jmp_buf refused;

static void say(const char *text) { (void)!write(1, text, strlen(text)); }

double price(const struct order *order, int discount) {
  double sum = order->pieces * order->each;
  if (order->pieces == 0) longjmp(refused, order->id);
  return sum - discount;
}

// Not recorded: whoever goes back through it needs its frame pointer.
double rounded(const struct order *order, int discount) { return (long)(price(order, discount) * 100) / 100.0; }

int settle(struct order *order) {
  char line[64];
  int discount = order->pieces > 3;
  if (setjmp(refused)) {
    say("an order without pieces\n");
    return 0;
  }
  double sum = rounded(order, discount);
  sold += order->pieces;
  takings += sum;
  snprintf(line, sizeof line, "order %d for %s: %.2f\n", order->id, order->customer, sum);
  say(line);
  return order->pieces;
}

struct order *ordered(int id, int pieces, double each, const char *customer) {
  struct order *order = malloc(sizeof *order);
  *order = (struct order){id, pieces, each, customer};
  return order;
}

void *evening(void *last) {
  struct order *late = ordered(3, 5, 2.25, "Zoe");
  int pieces = settle(late);
  ((struct order *)last)->pieces += pieces;
  free(late);
  return NULL;
}

void closing(int number) { sold = sold * 10 + (number == SIGUSR1); }

int main(void) {
  int counts[3] = {2, 0, 1};
  struct order *first = ordered(1, counts[0], 4.5, "Ada");
  struct order *second = ordered(2, counts[1], 1.25, "Bob");
  settle(first);
  settle(second);
  signal(SIGUSR1, closing);
  raise(SIGUSR1);
  pthread_t thread;
  pthread_create(&thread, NULL, evening, first);
  pthread_join(thread, NULL);
  return settle(first) == 7 ? 3 : 1;
}
