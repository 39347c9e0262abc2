// Templates, overloads and operators, for breakpoints on partial names.
#include <cstdio>
#include <string>
#include <vector>

template <class T> __attribute__((noinline)) T total(T a, T b) { return a + b; }

template <class T> struct Stack {
  std::vector<T> all;
  __attribute__((noinline)) void push(T one) { all.push_back(one); }
  __attribute__((noinline)) std::size_t size() const { return all.size(); }
  template <class F> __attribute__((noinline)) int each(F f) {
    int n = 0;
    for (T &one : all) n += f(one);
    return n;
  }
};

__attribute__((noinline)) int show(int a) { return a + 1; }
__attribute__((noinline)) int show(double a) { return int(a) + 2; }
__attribute__((noinline)) int show(const char *text, unsigned long n) { return text[n]; }
__attribute__((noinline)) int show(const std::string &text) { return int(text.size()); }
__attribute__((noinline)) static int show(std::vector<int> &all) { return int(all.size()); }
__attribute__((noinline)) int show() { return 0; }

namespace deep {
namespace er {
__attribute__((noinline)) int show(long a, ...) { return int(a); }
struct Value {
  int v;
  __attribute__((noinline)) Value operator+(const Value &other) const { return {v + other.v}; }
  __attribute__((noinline)) bool operator<(const Value &other) const { return v < other.v; }
  __attribute__((noinline)) int operator()(int a) { return v + a; }
  __attribute__((noinline)) const Value *operator->() const { return this; }
};
} // namespace er
} // namespace deep

namespace {
__attribute__((noinline)) int hidden(int (*f)(int)) { return f(2); }
} // namespace

int main() {
  Stack<int> numbers;
  Stack<std::string> texts;
  numbers.push(total(1, 2));
  texts.push("one");
  int all = int(total(1.5, 2.5)) + show(1) + show(2.0) + show("abc", 1ul) + show(std::string("x")) + show(numbers.all);
  all += show() + deep::er::show(3l, 1) + hidden(show);
  deep::er::Value a{1}, b{2};
  all += (a + b).v + (a < b) + a(3) + b->v;
  all += numbers.each([](int one) { return one; }) + int(numbers.size() + texts.size());
  std::printf("%d\n", all);
  return 0;
}
