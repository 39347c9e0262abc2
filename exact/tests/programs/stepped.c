/* What single steps must get right: it computes for a while, and then makes system calls, reads the clock, gets signals, and calls
   functions that the dynamic linker finds only then. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static volatile int handled;
static volatile unsigned long spun;
static void on_signal(int number)
{
    handled += number;
}
static void on_information(int number, siginfo_t *info, void *context)
{
    handled += number + info->si_code * 0 + (context != 0);
}
int main(void)
{
    struct timespec now, wait = {0, 1000000};
    struct sigaction action = {.sa_sigaction = on_information, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&stack, 0);
    signal(SIGUSR1, on_signal);
    sigaction(SIGUSR2, &action, 0);
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (time_t end = now.tv_sec * 1000 + now.tv_nsec / 1000000 + 300;
         now.tv_sec * 1000 + now.tv_nsec / 1000000 < end; spun++)
        clock_gettime(CLOCK_MONOTONIC, &now);
    for (int i = 0; i < 3; i++) {
        char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        page[5000] = (char)i;
        memset(page, 'x', 3000);
        raise(SIGUSR1);
        dprintf(1, "pass %d %c %d\n", i, page[7], getppid() > 0);
        raise(SIGUSR2);
        nanosleep(&wait, 0);
        char *block = malloc(200000);
        strcpy(block, "text");
        free(block);
        munmap(page, 8192);
    }
    printf("handled %d\n", handled);
    return 4;
}
