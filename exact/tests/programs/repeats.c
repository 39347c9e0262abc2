/* Instructions that repeat: a watched byte lies in the middle of what they write, and signals come while they run. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static char from[8192], to[8192];
static volatile long ticks;

static void tick(int signal) { (void)signal; ticks++; }

/* One byte is written, and then as many as are wanted, by the instruction at at_NAME. */
#define REPEAT(name, code)                                                                               \
    __attribute__((noinline, naked)) void name(void *to, const void *from, long count) {                \
        __asm__("mov %rdx, %rcx\n movl $0x58585858, %eax\n movb $7, (%rdi)\n"                            \
                ".globl at_" #name "\n at_" #name ": " code "\n ret");                                   \
    }                                                                                                    \
    void at_##name(void);
REPEAT(copy_bytes, "rep movsb")
REPEAT(copy_words, "rep movsq")
REPEAT(fill_bytes, "rep stosb")
REPEAT(fill_words, "rep stosl")

int main(int count, char **words) {
    (void)words;
    memset(from, 'f', sizeof from);
    printf("%p %p %p %p %p\n", (void *)to, (void *)at_copy_bytes, (void *)at_copy_words,
           (void *)at_fill_bytes, (void *)at_fill_words);
    fflush(stdout);
    copy_bytes(to, from, 4000);
    copy_words(to, from, 500);
    fill_bytes(to, from, 4000);
    fill_words(to, from, 1000);
    if (count > 1) {
        struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
        sigaction(SIGALRM, &action, NULL);
        struct itimerval often = {{0, 2000}, {0, 2000}};
        setitimer(ITIMER_REAL, &often, NULL);
        long size = 64L << 20, sum = 0;
        char *large = malloc(size);
        for (int i = 0; i < 20; i++) {
            fill_bytes(large, from, size);
            copy_bytes(large, large + size / 2 + i, size / 2 - i);
            sum += large[i * 1000];
        }
        printf("%ld %s\n", sum, ticks > 0 ? "ticks" : "none");
    }
    fflush(stdout);
    _exit(3);
}
