/* Four threads that race, take a lock, and are interrupted by a timer. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
static long total; static pthread_mutex_t m=PTHREAD_MUTEX_INITIALIZER; static volatile long racy; static volatile sig_atomic_t ticks;
static void tick(int s){ ticks++; }
static void*work(void*a){ long s=0; for(long i=0;i<300000;i++){ s+=i^(long)a; racy++; if(i%1000==0){ pthread_mutex_lock(&m); total+=s; pthread_mutex_unlock(&m);} } return (void*)s; }
int main(){ struct sigaction sa; memset(&sa,0,sizeof sa); sa.sa_handler=tick; sa.sa_flags=SA_RESTART; sigaction(SIGALRM,&sa,0); struct itimerval it={{0,2000},{0,2000}}; setitimer(ITIMER_REAL,&it,0);
 pthread_t t[4]; for(long i=0;i<4;i++) pthread_create(t+i,0,work,(void*)i); for(int i=0;i<4;i++){ void*r; pthread_join(t[i],&r); printf("%d %ld\n",i,(long)r);} 
 while(!ticks) usleep(100); /* on a busy machine the threads may be done before the first one */
 /* a thread that is interrupted between reading and writing throws away what the others have added, but the last one to begin its last round adds to at least one */
 struct timespec ts; clock_gettime(CLOCK_MONOTONIC,&ts); printf("total %ld racy %s ticks %s\n", total, racy>1&&racy<=1200000?"yes":"no", ticks>0?"yes":"no"); fflush(stdout); usleep(5000); return 0; }
