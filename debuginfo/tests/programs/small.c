// A library small enough to be damaged thousands of times. It has each kind of DIE that the crate reads.
enum colour { RED, GREEN = 7, BLUE = -3 };
struct pair { double x; int y : 5; int z : 11; };
union either { long whole; char parts[8]; };
struct list { struct list *next; const char *name; enum colour colour; };
typedef int (*callback)(void *, const struct list *);

static int counter;

__attribute__((noinline)) static int count(int by) { return counter += by; }
int walk(struct list *list, callback each, void *argument) {
    int sum = 0;
    for (; list; list = list->next) sum += each(argument, list) + count(list->colour);
    return sum;
}
struct pair swap(struct pair a, union either b, long double c, float d[4]) {
    struct pair r = {a.x + (double)c + d[0], a.z & 15, (int)b.whole};
    return r;
}
int several(int a, long b, short c, char d, unsigned e, void *f, struct pair g, int h, ...) {
    if (a < 0) __builtin_trap();
    return a + (int)b + c + d + (int)e + h + (f != 0) + g.y;
}
__attribute__((noreturn)) void stop(void) { for (;;) counter++; }
static int one(void) { return 1; }
static int (*choose(void))(void) { return one; }
int chosen(void) __attribute__((ifunc("choose")));
int calls_chosen(void) { return chosen() + counter; }
