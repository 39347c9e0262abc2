/* Instructions that repeat, and come to a page that cannot be used: from below, from above, and where they read. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };
static char *pages;
static int faults;

static void opens(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
    faults++;
    mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE);
}

static void fill(void *to, long words) {
    __asm__ volatile("rep stosq" : "+D"(to), "+c"(words) : "a"(0x0707070707070707) : "memory");
}

static void fill_down(void *to, long bytes) {
    __asm__ volatile("std\n rep stosb\n cld" : "+D"(to), "+c"(bytes) : "a"(5) : "memory", "cc");
}

static void copy(void *to, const void *from, long bytes) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

int main(int count, char **words) {
    static char text[2 * PAGE];
    pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + PAGE, PAGE, PROT_NONE);
    if (count > 2) {
        /* Natively the processor has done a part by then. */
        if (!strcmp(words[2], "up"))
            fill(pages + 12, 600);
        else if (!strcmp(words[2], "down"))
            fill_down(pages + 2 * PAGE + 100, 300);
        else
            copy(text, pages + 1000, 2 * PAGE);
        return 1;
    }
    struct sigaction action = {.sa_sigaction = opens, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    for (int i = 0; i < 8; i++) {
        switch (i % 3) {
        case 0: fill(pages + 12 + i, 600); break;
        case 1: fill_down(pages + 2 * PAGE + 100 + i, 300); break;
        default: copy(text, pages + 1000 + i, 2 * PAGE);
        }
        mprotect(pages + PAGE, PAGE, PROT_NONE);
    }
    mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE);
    long sum = 0;
    for (int i = 0; i < 2 * PAGE; i++)
        sum = sum * 3 + pages[i] + text[i];
    printf("%d %ld\n", faults, sum);
    return 0;
}
