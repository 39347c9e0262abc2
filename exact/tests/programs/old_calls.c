/* System calls as programs of 32 bits make them, in the middle of much else: a timer, a thread that waits, code that the program writes. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static volatile long ticks;
static int ends[2];

static void tick(int signal) { (void)signal; ticks++; }

static void *reader(void *unused) {
    (void)unused;
    char byte = 0;
    return (void *)(long)(read(ends[0], &byte, 1) != 1 || byte != 'a');
}

int main(int count, char **words) {
    (void)words;
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &often, NULL);
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, "\xb8\x05\0\0\0\xc3", 6); /* mov eax, 5; ret */
    int five = ((int (*)(void))code)();
    pthread_t thread;
    if (pipe(ends) || pthread_create(&thread, NULL, reader, NULL))
        return 9;
    usleep(3000);
    long pid;
    if (count > 1)
        __asm__ volatile("sysenter" : "=a"(pid) : "a"(20L) : "rcx", "rdx", "r8", "r9", "r10", "r11", "memory");
    __asm__ volatile("int $0x80" : "=a"(pid) : "a"(20L) : "r8", "r9", "r10", "r11", "memory");
    code[1] = 6;
    int six = ((int (*)(void))code)();
    ssize_t written = write(ends[1], "a", 1);
    void *failed;
    pthread_join(thread, &failed);
    printf("%d %d %d %zd %d\n", pid == getpid(), five, six, written, failed != NULL);
    fflush(stdout);
    _exit(5);
}
