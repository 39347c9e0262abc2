/* C++ exceptions, longjmp, threads that throw. */
#include <stdexcept>
#include <iostream>
#include <vector>
#include <map>
#include <thread>
#include <setjmp.h>
static int deep(int n){ if(n==0) throw std::runtime_error("deep"); return deep(n-1)+1; }
static jmp_buf jb;
static void jump(int n){ if(n==0) longjmp(jb,7); jump(n-1); }
int main(){ int caught=0; for(int i=0;i<200;i++){ try{ deep(i%20);}catch(const std::exception&e){caught++;} } int r=setjmp(jb); if(!r) jump(10); std::map<int,int> m; for(int i=0;i<10000;i++) m[i*7919%10007]=i; std::vector<std::thread> ts; for(int t=0;t<4;t++) ts.emplace_back([t]{ for(int i=0;i<50;i++) try{ deep(i%10);}catch(...){ } }); for(auto&t:ts) t.join(); std::cout<<caught<<" "<<r<<" "<<m.size()<<std::endl; return caught%256; }
