/* A handler returns to before a system call, with the flag set by which the processor resumes an instruction (RF), as it is after a
   fault. The call does not keep that flag in r11, which the next call is made with. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define RESUME (1L << 16)

/* Where the first of two calls lies. */
extern char first_call[] __attribute__((visibility("hidden")));

static void go_on(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    registers[REG_EFL] |= RESUME;
    registers[REG_RAX] = SYS_getpid;
    registers[REG_RIP] = (greg_t)first_call;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = go_on, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
    long flags = 0, number = SYS_getpid;
    __asm__ volatile("ud2\n"
                     "first_call: syscall\n"
                     "mov %1, %%rax\n"
                     "syscall\n"
                     "mov %%r11, %0"
                     : "+r"(flags)
                     : "r"(number)
                     : "rax", "rcx", "r11", "memory");
    puts(flags & RESUME ? "kept" : "not kept");
    return 0;
}
