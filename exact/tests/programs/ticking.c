/* A timer that is faster than its signals can be handled under a recorder, up to the end of the program, or so many
 * signals: on some machines the program would come no further. */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

static volatile long ticks;

static void tick(int signal) {
    (void)signal;
    struct itimerval never = {{0, 0}, {0, 0}};
    if (++ticks == 200)
        setitimer(ITIMER_REAL, &never, NULL);
}

int main(void) {
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 150}, {0, 150}};
    setitimer(ITIMER_REAL, &often, NULL);
    volatile long sum = 0;
    for (int i = 0; i < 400000; i++)
        sum += i;
    printf("%ld %s\n", sum, ticks > 0 ? "ticks" : "none");
    fflush(stdout);
    _exit(3);
}
