/* Who wrote these bytes? A wrong value is written once among many right ones, by an instruction, and by the kernel. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int sold;
char text[64];
int untouched;
static jmp_buf out;

__attribute__((noinline)) void sell(int i) {
    if (i == 777)
        sold = -1;
    else
        sold += i;
}

__attribute__((noinline)) int leave(int i) {
    if (i == 3)
        longjmp(out, 1);
    return leave(i + 1) + 1;
}

__attribute__((noinline)) double half(double x) { return x / 2; }

int main(void) {
    int ends[2];
    double sum = 0;
    printf("%p %p %p %p %p %p\n", (void *)&sold, (void *)text, (void *)&untouched, (void *)sell, (void *)leave, (void *)half);
    fflush(stdout);
    for (int i = 0; i < 1000 && sold >= 0; i++)
        sell(i);
    memset(text, 'x', 40);
    if (pipe(ends) || write(ends[1], "abcdefgh", 8) != 8 || read(ends[0], text + 8, 8) != 8)
        return 1;
    if (!setjmp(out))
        leave(0);
    for (int i = 0; i < 10; i++)
        sum += half(i);
    printf("%d %.16s %g\n", sold, text, sum);
    return 0;
}
