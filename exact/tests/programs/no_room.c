/* Overflows its stack. A handler is there for the signal, and has no room for its frame: the kernel ends the program (signal(7)). */
#include <signal.h>
#include <sys/resource.h>

static void handler(int number) { (void)number; }

__attribute__((noinline)) static int deep(int n) {
    volatile char room[256];
    room[0] = (char)n;
    return n ? deep(n - 1) + room[0] : 0;
}

int main(void) {
    struct rlimit limit = {512 << 10, 512 << 10};
    if (setrlimit(RLIMIT_STACK, &limit)) return 1;
    signal(SIGSEGV, handler);
    return deep(100000000);
}
