/* Calls of one function by threads, some of which end by longjmp, and what is left of a recorder in between. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <unistd.h>

static __thread jmp_buf out;
static char *heap;
static int mappings;

__attribute__((noinline)) static void leap(int i) {
    if (i % 3 == 0)
        longjmp(out, 1);
}

__attribute__((noinline)) int chosen(int i) {
    char local[64];
    memset(local, i, sizeof local);
    leap(i);
    heap[i * 97 % 65536] = local[i % 64];
    return i * 2;
}

static void *work(void *number) {
    long sum = 0;
    for (int i = 0; i < 40; i++) {
        if (!setjmp(out))
            sum += chosen(i + (int)(long)number);
        for (volatile int k = 0; k < 2000; k++)
            ;
    }
    return (void *)sum;
}

/* How many mappings there are. */
static int count(void) {
    char line[512];
    int lines = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        lines++;
    fclose(maps);
    return lines;
}

static int cpu(void) {
    return (int)((struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset))->cpu_id;
}

int main(int arguments, char **values) {
    int rounds = arguments > 1 ? atoi(values[1]) : 0;
    heap = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    count();
    mappings = count();
    long total = 0;
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 3; i++) {
        void *sum;
        pthread_join(threads[i], &sum);
        total += (long)sum;
    }
    for (int i = 0; i < rounds; i++) {
        /* What is mapped in between is another thing at the same place. */
        char *there = mmap(heap, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        there[i % 4096] = 1;
        if (i % 10 == 9)
            madvise(heap + 8192, 8192, MADV_DONTNEED);
        usleep(1000);
    }
    printf("total %ld", total);
    if (rounds) {
        /* Arenas and stacks of threads stay. */
        printf(" left %s cpu %s", count() <= mappings + 9 ? "nothing" : "something", cpu() >= 0 ? "known" : "unknown");
    }
    printf("\n");
    return 5;
}
