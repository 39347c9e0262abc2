/* Faults at wild places: argv[1] says which, argv[2] what the handler does ("none": there is none, "tell", "jump", "mend"). */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static sigjmp_buf back;
static const char *what, *how;
static char heap[8192];
static int told;

static void landed(void) {
  printf("landed %d\n", told);
  fflush(stdout);
  _exit(7);
}

static void on(int number, siginfo_t *info, void *context) {
  greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
  char line[1024];
  int length = sprintf(line, "signal %d code %d addr %p err %llx trap %lld\n", number, info->si_code, info->si_addr, r[REG_ERR], r[REG_TRAPNO]);
  for (int i = 0; i < 18; i++) length += sprintf(line + length, "%llx ", r[i]);
  unsigned long top = 0;
  if (r[REG_RSP] > 0x7f0000000000 && r[REG_RSP] < 0x7ffffffff000) top = *(unsigned long *)r[REG_RSP];
  length += sprintf(line + length, "stack %lx\n", top);
  write(1, line, length);
  told++;
  if (!strcmp(how, "tell")) _exit(3);
  if (!strcmp(how, "jump")) siglongjmp(back, number);
  r[REG_RIP] = (long)landed;
  r[REG_RSP] = (long)(heap + sizeof heap - 8);
}

#define CALL(text, target) __asm__ volatile(text : : "r"(target), "c"(0x1111), "a"(0x2222L), "d"(0x3333) : "memory", "r11", "r15")
static volatile long nc = 0x4141414141414141, null = 0, far = 0x12340000, kernel = 0xffffffff81000000;
static struct { long first; volatile long target; } held = {1, 0x4242424242424242};
static unsigned char data[] = {0x90, 0xc3};

/* Code at the end of a page, of which `second` follows: 0 unmapped, else with this protection. */
static void end_of_page(const void *code, int length, int inside, int second) {
  char *page = mmap((void *)0x500000000, 8192, 7, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  char *at = page + 4096 - inside;
  memcpy(at, code, length);
  if (second) mprotect(page + 4096, 4096, second);
  else munmap(page + 4096, 4096);
  mprotect(page, 4096, PROT_READ | PROT_EXEC);
  ((void (*)(void))at)();
}
#define CODE(...) do { unsigned char code[] = {__VA_ARGS__}; end_of_page(code, sizeof code, 64, 3); } while (0)

__attribute__((noinline)) static void smash(const char *text, int length) {
  char buffer[16];
  memcpy(buffer, text, length);
}

static int is(const char *name) { return !strcmp(what, name); }

static void fault(void) {
  if (is("null")) ((void (*)(void))null)();
  if (is("unmapped")) ((void (*)(void))far)();
  if (is("noncanonical")) ((void (*)(void))nc)();
  if (is("kernel")) ((void (*)(void))kernel)();
  if (is("call_r15")) __asm__ volatile("mov %0, %%r15; call *%%r15" : : "r"(nc) : "r15");
  if (is("call_r11")) __asm__ volatile("mov %0, %%r11; call *%%r11" : : "r"(nc) : "r11");
  if (is("call_r15_null")) __asm__ volatile("xor %%r15d, %%r15d; call *%%r15" : : : "r15");
  if (is("call_r11_null")) __asm__ volatile("xor %%r11d, %%r11d; call *%%r11" : : : "r11");
  if (is("call_memory")) __asm__ volatile("call *8(%0)" : : "r"(&held));
  if (is("call_of_null")) CALL("xor %%esi, %%esi; call *16(%%rsi)", null);
  if (is("jmp")) CALL("jmp *%0", nc);
  if (is("jmp_null")) CALL("jmp *%0", null);
  if (is("ret")) CALL("push %0; ret", nc);
  if (is("ret_null")) CALL("push %0; ret", null);
  if (is("ret_16")) CALL("push %0; ret $16", nc);
  if (is("ret_16_far")) CALL("push %0; ret $16", far);
  if (is("ret_r15")) CALL("mov %0, %%r15; push %%r15; ret", nc);
  if (is("ret_r11")) CALL("mov %0, %%r11; push %%r11; ret", nc);
  if (is("stack_gone")) CALL("mov %0, %%rsp; ret", far);
  if (is("stack_nowhere")) CALL("mov %0, %%rsp; ret", nc);
  if (is("call_stack_gone")) CALL("mov %0, %%rsp; call *%%rax", far);
  if (is("smash")) smash("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 40);
  if (is("smash_part")) smash("AAAAAAAAAAAAAAAAAAAAAAAABBBBBB\0\0", 32);
  if (is("data")) ((void (*)(void))data)();
  if (is("stack")) { unsigned char code[] = {0x90, 0xc3}; ((void (*)(void))code)(); }
  if (is("heap")) { unsigned char *code = malloc(64); memcpy(code, data, 2); ((void (*)(void))code)(); }
  if (is("half")) end_of_page("\x90\x90\x48\xb8\1\2\3\4\5\6\7\10", 6, 6, 0);
  if (is("half_data")) end_of_page("\x90\x90\x48\xb8\1\2\3\4\5\6\7\10", 12, 6, 3);
  if (is("ends")) end_of_page("\x90\x90\x90", 3, 3, 0);
  if (is("ends_data")) end_of_page("\x90\x90\x90\xc3", 4, 3, 3);
  if (is("ends_none")) end_of_page("\x90\x90\x90", 3, 3, PROT_READ);
  if (is("bad_end")) end_of_page("\x90\x06", 2, 2, 0);
  if (is("ud2")) CODE(0x90, 0x0f, 0x0b);
  if (is("bad")) CODE(0x90, 0x06);
  if (is("hlt")) CODE(0x90, 0xf4);
  if (is("in")) CODE(0x90, 0xec);
  if (is("cli")) CODE(0x90, 0xfa);
  if (is("int3")) CODE(0x90, 0xcc);
  if (is("int_3")) CODE(0x90, 0xcd, 0x03, 0x90);
  if (is("int_4")) CODE(0x90, 0xcd, 0x04, 0x90);
  if (is("long")) CODE(0x90, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90);
  if (is("int81")) CODE(0x90, 0xcd, 0x81);
  if (is("jump")) CODE(0x90, 0xe9, 0, 0, 0, 0x10);
  if (is("call")) CODE(0x90, 0xe8, 0, 0, 0, 0x10);
  if (is("branch")) CODE(0x31, 0xc0, 0x0f, 0x84, 0, 0, 0, 0x10);
  if (is("gs")) CODE(0x90, 0x65, 0x48, 0x8b, 0x04, 0x25, 8, 0, 0, 0);
  if (is("set_gs")) CODE(0xb8, 0x34, 0x12, 0, 0, 0x8e, 0xe8);
  if (is("far_ret")) CODE(0x6a, 0x7b, 0x6a, 0x00, 0x48, 0xcb);
  if (is("system_ret")) CODE(0x90, 0x48, 0x0f, 0x07);
  if (is("moved")) CODE(0x0f, 0x28, 0x04, 0x25, 1, 0, 0, 0);
  if (is("divide")) { volatile int zero = 0, one = 1; one /= zero; }
  if (is("x87")) { unsigned short control = 0x37b; volatile long double zero = 0, one = 1; __asm__ volatile("fldcw %0" : : "m"(control)); one /= zero; one += 1; }
  if (is("sse")) { unsigned control = 0x1d80; volatile double zero = 0, one = 1; __asm__ volatile("ldmxcsr %0" : : "m"(control)); one /= zero; }
  if (is("read_only")) *(volatile char *)what = 1, *(volatile char *)"text" = 1;
}

int main(int count, char **arguments) {
  what = arguments[1];
  how = count > 2 ? arguments[2] : "none";
  static char stack[1 << 16];
  stack_t alternate = {stack, 0, sizeof stack};
  struct sigaction action = {.sa_sigaction = on, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  if (strcmp(how, "none")) {
    sigaltstack(&alternate, 0);
    int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    for (int i = 0; i < 5; i++) sigaction(numbers[i], &action, 0);
  }
  write(1, "before\n", 7);
  for (int round = 0; round < 3; round++) {
    int number = sigsetjmp(back, 1);
    if (number == 0) {
      fault();
      write(1, "no fault\n", 9);
    }
  }
  printf("after %d\n", told);
  return 5;
}
