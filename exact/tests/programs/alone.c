/* The first thread ends before the last one, which ends by itself, or by a fault. */
#include <pthread.h>
#include <stdio.h>

static pthread_t first;

static void *alone(void *crashes) {
    pthread_join(first, NULL);
    puts("alone");
    fflush(stdout);
    if (crashes)
        *(volatile char *)8 = 1;
    return NULL;
}

int main(int count, char **words) {
    pthread_t last;
    first = pthread_self();
    pthread_create(&last, NULL, alone, count > 1 ? words : NULL);
    pthread_exit(NULL);
}
