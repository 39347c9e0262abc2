/* A timer that is faster than its signals can be handled under a recorder, up to the end of the program, or so many
 * signals: on some machines the program would come no further. */
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static volatile long ticks;
static timer_t timer;

static void set(long nanoseconds) {
    struct itimerspec times = {{0, nanoseconds}, {0, nanoseconds}};
    timer_settime(timer, 0, &times, NULL);
}

static void tick(int signal) {
    (void)signal;
    if (++ticks == 200)
        set(0);
}

int main(void) {
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    set(150000);
    volatile long sum = 0;
    for (int i = 0; i < 400000; i++)
        sum += i;
    printf("%ld %s\n", sum, ticks > 0 ? "ticks" : "none");
    fflush(stdout);
    _exit(3);
}
