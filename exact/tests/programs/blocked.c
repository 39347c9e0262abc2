/* Threads that wait in the kernel, and are interrupted, whenever recording begins or ends: a lock, a pipe, poll, a sleep, epoll. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
static int turn, rounds, failures;
static int to_reader[2], to_poller[2], to_epoll[2];
static atomic_long ticks;

static void tick(int signal) { (void)signal; ticks++; }

static void expect(int is_right, const char *what) {
    if (!is_right) {
        fprintf(stderr, "%s: %s\n", what, strerror(errno));
        failures++;
    }
}

static void *waiter(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < rounds; i++) {
        while (turn != i + 1)
            pthread_cond_wait(&woken, &lock);
        pthread_cond_broadcast(&woken);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *reader(void *sum) {
    for (int i = 0; i < rounds; i++) {
        char byte;
        expect(read(to_reader[0], &byte, 1) == 1 && byte == (char)i, "read");
        *(long *)sum += byte;
    }
    return NULL;
}

static void *poller(void *unused) {
    (void)unused;
    for (int i = 0; i < rounds; i++) {
        struct pollfd one = {to_poller[0], POLLIN, 0};
        char byte;
        int ready;
        while ((ready = poll(&one, 1, 20000)) < 0 && errno == EINTR)
            ;
        expect(ready == 1 && read(to_poller[0], &byte, 1) == 1, "poll");
    }
    return NULL;
}

static void *sleeper(void *unused) {
    (void)unused;
    for (int i = 0; i < rounds / 4; i++) {
        struct timespec before, after, time = {0, 3000000};
        clock_gettime(CLOCK_MONOTONIC, &before);
        while (nanosleep(&time, &time) && errno == EINTR)
            ;
        clock_gettime(CLOCK_MONOTONIC, &after);
        expect((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec >= 2900000, "sleep");
    }
    return NULL;
}

static void *events(void *unused) {
    (void)unused;
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(set, EPOLL_CTL_ADD, to_epoll[0], &event);
    /* No signal comes to this thread: EINTR would be wrong. */
    for (int i = 0; i < rounds; i++) {
        char byte;
        expect(epoll_wait(set, &event, 1, -1) == 1 && read(to_epoll[0], &byte, 1) == 1, "epoll");
    }
    return NULL;
}

int main(int count, char **values) {
    rounds = count > 1 ? atoi(values[1]) : 200;
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    if (pipe(to_reader) || pipe(to_poller) || pipe(to_epoll))
        return 1;
    pthread_t threads[5];
    long sum = 0;
    pthread_create(&threads[0], NULL, waiter, NULL);
    pthread_create(&threads[1], NULL, reader, &sum);
    pthread_create(&threads[2], NULL, poller, NULL);
    pthread_create(&threads[3], NULL, sleeper, NULL);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    pthread_create(&threads[4], NULL, events, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    struct itimerval often = {{0, 1700}, {0, 1700}};
    setitimer(ITIMER_REAL, &often, NULL);
    double work = 0;
    for (int i = 0; i < rounds; i++) {
        for (int k = 0; k < 200000; k++)
            work += sqrt(k + i);
        char byte = (char)i;
        expect(write(to_reader[1], &byte, 1) == 1, "write");
        expect(write(to_poller[1], &byte, 1) == 1, "write");
        expect(write(to_epoll[1], &byte, 1) == 1, "write");
        pthread_mutex_lock(&lock);
        turn = i + 1;
        pthread_cond_broadcast(&woken);
        pthread_mutex_unlock(&lock);
        while (i + 1 < rounds && i % 8 == 0 && usleep(500) && errno == EINTR)
            ;
        if (i + 1 < rounds) {
            pthread_mutex_lock(&lock);
            pthread_mutex_unlock(&lock);
        }
    }
    for (int i = 1; i < 5; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %.6g %d %s\n", sum, work, failures, ticks > 0 ? "ticks" : "none");
    fflush(stdout);
    _exit(failures ? 1 : 3);
}
