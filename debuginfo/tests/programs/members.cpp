// Pointers to members of classes with bases, virtual functions and an unnamed union.
struct Base {
  virtual int go(int x) { return x + 1; }
  int plain(int x) { return x * 2; }
  int a = 1, b = 2;
  virtual ~Base() {}
  virtual int other(double) const { return 3; }
};
struct Other {
  virtual void first() {}
  int q = 4;
};
struct Mid : Base {
  int c = 3;
  union {
    int whole;
    short half;
  };
};
struct Two : Other, Mid {
  int d = 5;
  int go(int x) override { return x + 2; }
  virtual int last(const Base *, Two &) { return 4; }
};
enum Color { RED, GREEN };
namespace space {
struct Holder {
  int many[3];
  struct Part {
    int k, l;
  } part;
  int mixed(const char *s, Color c) { return *s + c; }
};
template <typename T> struct Box {
  T held;
  virtual T get(T other) { return held + other; }
};
}  // namespace space
struct Kept {
  int Base::*field;
  int (Base::*call)(int);
};

Two two;
space::Box<int> box;

void stop() {}

int main() {
  int (Base::*v)(int) = &Base::go;
  int (Base::*p)(int) = &Base::plain;
  int (Base::*none)(int) = nullptr;
  int (Base::*constant)(double) const = &Base::other;
  int Base::*a = &Base::a;
  int Base::*b = &Base::b;
  int Base::*same = b;
  int Base::*unset = nullptr;
  int Mid::*in_union = &Mid::whole;
  int Two::*converted = a;
  int Two::*d = &Two::d;
  int (Two::*moved)(int) = p;
  int (Two::*inherited)(int) = v;
  int (Two::*overridden)(int) = &Two::go;
  int (Two::*last)(const Base *, Two &) = &Two::last;
  space::Holder::Part space::Holder::*part = &space::Holder::part;
  int (space::Holder::*many)[3] = &space::Holder::many;
  int (space::Holder::*mixed)(const char *, Color) = &space::Holder::mixed;
  int (space::Box<int>::*get)(int) = &space::Box<int>::get;
  int space::Box<int>::*held = &space::Box<int>::held;
  Kept kept = {&Base::b, &Base::go};
  stop();
  return (two.*v)(1) + (two.*moved)(2) + two.*converted + (none == nullptr) + (box.*get)(0);
}
