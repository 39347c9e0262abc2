// Prices six orders in two threads. One order has no items and throws; one line it prints is not UTF-8.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

namespace shop {
struct BadOrder {
  int id;
};

NOINLINE unsigned checksum(const char *text, int len) {
  unsigned sum = 7;
  for (int i = 0; i < len; i++) sum = sum * 31 + (unsigned char)text[i];
  return sum;
}

NOINLINE double price(int items, double each) {
  if (items == 0) throw BadOrder{items};
  return items * each;
}

NOINLINE long combinations(int n) { return n < 2 ? 1 : combinations(n - 1) + combinations(n - 2); }

NOINLINE void say(int fd, const char *text) { (void)!write(fd, text, strlen(text)); }

NOINLINE bool order(int id, int items, const char *customer) {
  try {
    char line[80];
    double total = price(items, 1.25);
    snprintf(line, sizeof line, "order %d for %s: %.2f \xe2\x82\xac, %08x, %ld ways\n", id, customer, total,
             checksum(customer, (int)strlen(customer)), combinations(items));
    say(1, line);
    return true;
  } catch (const BadOrder &) {
    say(2, "an order without items \xff\xfe\n");
    return false;
  }
}

NOINLINE void *evening(void *) {
  bool good = order(4, 3, "Zo\xc3\xab") & order(5, 0, "nobody") & order(6, 1, "\xe4\xb8\x96\xe7\x95\x8c");
  return (void *)(long)good;
}
}  // namespace shop

int main() {
  pthread_t thread;
  void *good;
  for (int id = 1; id <= 3; id++) shop::order(id, 2 * id, "Ada");
  pthread_create(&thread, nullptr, shop::evening, nullptr);
  pthread_join(thread, &good);
  return good ? 0 : 3;
}
