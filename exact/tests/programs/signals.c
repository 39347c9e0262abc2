/* Faults with handlers on a stack of their own, signals, code that is rewritten, children. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <setjmp.h>
#include <unistd.h>
#include <sys/wait.h>
#include <ucontext.h>
static sigjmp_buf jb; static int segv, fpe, usr;
static void on(int s, siginfo_t*i, void*u){ if(s==SIGSEGV){ segv++; siglongjmp(jb,1);} if(s==SIGFPE){ fpe++; siglongjmp(jb,2);} if(s==SIGILL){ ((ucontext_t*)u)->uc_mcontext.gregs[REG_RIP]+=2; } usr++; }
int main(){ stack_t ss={malloc(65536),0,65536}; sigaltstack(&ss,0); struct sigaction sa; memset(&sa,0,sizeof sa); sa.sa_sigaction=on; sa.sa_flags=SA_SIGINFO|SA_ONSTACK|SA_NODEFER; sigaction(SIGSEGV,&sa,0); sigaction(SIGFPE,&sa,0); sigaction(SIGUSR1,&sa,0); sigaction(SIGILL,&sa,0); sigaction(SIGCHLD,&sa,0);
 for(volatile int i=0;i<50;i++){ if(!sigsetjmp(jb,1)) *(volatile int*)(long)(8+i)=1; if(!sigsetjmp(jb,1)){ volatile int z=0; volatile int q=1/z; (void)q; } raise(SIGUSR1); __asm__ volatile("ud2"); }
 unsigned char code[]={0xb8,1,0,0,0,0xc3}; unsigned char*p=mmap(0,4096,7,MAP_PRIVATE|MAP_ANONYMOUS,-1,0); int sum=0; for(int i=0;i<100;i++){ code[1]=i; memcpy(p,code,6); sum+=((int(*)(void))p)(); }
 pid_t c=fork(); if(c==0){ printf("child\n"); fflush(stdout); _exit(5);} int st; waitpid(c,&st,0); fflush(stdout); int sy=system("echo shell; exit 3");
 printf("%d %d %d %d %d %d\n",segv,fpe,usr>=100,sum,WEXITSTATUS(st),WEXITSTATUS(sy)); return 0; }
