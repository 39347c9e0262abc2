/* System calls that come back as signals. The handler lets the next ones through, or leaves them as they are: the program ends then. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

static volatile char selector;
static volatile int caught, opens;

static void handler(int signal) {
    (void)signal;
    caught++;
    if (opens)
        selector = 0;
}

int main(int count, char **words) {
    (void)words;
    opens = count == 1;
    signal(SIGSYS, handler);
    int failed = prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &selector);
    printf("%d\n", failed);
    fflush(stdout);
    selector = 1;
    syscall(SYS_getppid);
    selector = 0;
    printf("%d\n", caught);
    fflush(stdout);
    return 3;
}
