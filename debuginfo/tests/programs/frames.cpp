// Templates, lambdas, methods, exceptions and functions of unnamed namespaces on the stack.
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <vector>

volatile int sink;

__attribute__((noinline)) void stop_here(int n) { sink = n; __asm__ volatile("" ::: "memory"); }

namespace ns {
template <typename T> struct Box {
  T value;
  explicit Box(T v) : value(v) {}
  __attribute__((noinline)) T get(int n) const {
    stop_here(n);
    return value;
  }
  ~Box() {
    if (sink == 77) stop_here(77);
    sink = 0;
  }
};

template <typename T> __attribute__((noinline)) T twice(T v) {
  T sum = v + v;
  stop_here(2);
  return sum;
}
} // namespace ns

namespace {
__attribute__((noinline)) int hidden(int n) {
  auto add = [n](int m) {
    stop_here(m);
    return n + m;
  };
  return add(3) + sink;
}
} // namespace

struct Base {
  virtual ~Base() = default;
  virtual int run(int n) = 0;
};

struct Derived : Base {
  int run(int n) override {
    stop_here(n);
    if (n > 1)
      throw std::runtime_error("too much");
    return n;
  }
};

__attribute__((noinline)) int catches(Base & base) {
  try {
    return base.run(5);
  } catch (const std::exception &) {
    stop_here(6);
  }
  return sink;
}

static inline int clamp(int n) {
  if (n < 0)
    return 0;
  return n > 100 ? 100 : n;
}

__attribute__((noinline)) int uses_clamp(int a, int b) {
  int first = clamp(a + sink);
  int second = clamp(b - sink);
  return first * second;
}

int main() {
  ns::Box<int> box(4);
  ns::Box<double> other(2.5);
  box.get(1);
  other.get(1);
  ns::twice<int>(3);
  ns::twice<long>(3);
  hidden(4);
  Derived derived;
  catches(derived);
  std::vector<int> list{3, 1, 2};
  std::sort(list.begin(), list.end(), [](int a, int b) {
    static bool stopped;
    if (!stopped) { stopped = true; stop_here(9); }
    return a < b;
  });
  std::function<int(int)> f = [&](int n) { stop_here(n); return n; };
  f(8);
  return uses_clamp(list[0], list[1]) == -1;
}
