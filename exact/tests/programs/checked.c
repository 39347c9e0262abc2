/* Everything that a recording has to tell matters here: results of calls, bytes from the kernel, signals, threads that take turns, the
   processor's clock, code that changes, memory that comes and goes. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <x86intrin.h>

static volatile unsigned long sum;

static void on(int number) { sum = sum * 31 + (unsigned long)number; }

static void *work(void *argument) {
    for (unsigned long at = 0; at < 20000; at++) {
        sum = sum * 31 + at + (unsigned long)argument;
        if (at % 1000 == 0)
            sched_yield();
    }
    return NULL;
}

int main(void) {
    int ends[2];
    pthread_t threads[2];
    char from[64], to[64];
    unsigned char code[] = {0xb8, 1, 0, 0, 0, 0xc3};
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on;
    sigaction(SIGUSR1, &action, NULL);
    if (pipe(ends))
        return 1;
    for (int round = 0; round < 12; round++) {
        memset(from, round + 'a', sizeof from);
        ssize_t count = write(ends[1], from, 10 + (size_t)round);
        count += read(ends[0], to, sizeof to) * 3;
        for (int at = 0; at < 10 + round; at++)
            sum = sum * 31 + (unsigned char)to[at];
        sum += (unsigned long)count;
        raise(SIGUSR1);
        sum = sum * 31 + __rdtsc();
        code[1] = (unsigned char)round;
        memcpy(page, code, sizeof code);
        sum = sum * 31 + (unsigned long)((int (*)(void))page)();
        unsigned long *room = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        room[3] = sum;
        sum += room[600] + room[3];
        munmap(room, 8192);
    }
    for (unsigned long at = 0; at < 2; at++)
        pthread_create(threads + at, NULL, work, (void *)at);
    for (int at = 0; at < 2; at++)
        pthread_join(threads[at], NULL);
    printf("%lx\n", sum);
    return 7;
}
