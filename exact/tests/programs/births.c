/* Threads that live for a moment, made one after the other, while signals come and all of them ask what time it is. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static atomic_long ticks, backwards, born;

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

/* Time never goes back for one thread. */
static void ask(int times) {
    long before = now();
    for (int i = 0; i < times; i++) {
        long after = now();
        if (after < before)
            backwards++;
        before = after;
    }
}

static void tick(int signal) {
    (void)signal;
    int kept = errno;
    ask(2);
    ticks++;
    errno = kept;
}

static void *live(void *unused) {
    (void)unused;
    ask(20);
    born++;
    return NULL;
}

int main(int count, char **values) {
    int rounds = count > 1 ? atoi(values[1]) : 300;
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 700}, {0, 700}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < rounds; i++) {
        pthread_t threads[3];
        for (int k = 0; k < 3; k++) {
            int failed = pthread_create(&threads[k], NULL, live, NULL);
            if (failed) {
                fprintf(stderr, "thread: %s\n", strerror(failed));
                return 1;
            }
        }
        ask(100);
        for (int k = 0; k < 3; k++)
            pthread_join(threads[k], NULL);
    }
    printf("%ld born, %ld backwards, %s\n", born, backwards, ticks > 0 ? "ticks" : "none");
    return backwards ? 1 : 0;
}
