// The C++ side of the small library: scopes, classes passed in both ways, templates, members, references.
namespace shapes {
struct point { float x, y; };
class owner {
public:
    owner(int n);
    owner(const owner &other);
    ~owner();
    virtual int size() const;
    int held[3];
};
class derived : public owner {
public:
    derived() : owner(2) {}
    int size() const override;
    static int made(point p, derived d);
};
template <typename T> struct box {
    T value;
    T take(T other) { return value = other; }
};
namespace { int hidden(box<point> b, int n) { return b.value.x > n; } }
owner::owner(int n) { held[0] = n; }
owner::owner(const owner &o) { held[0] = o.held[1]; }
owner::~owner() { held[0] = 0; }
int owner::size() const { return held[2]; }
int derived::size() const { return 2; }
int derived::made(point p, derived d) { return d.held[1] + hidden({p}, 3); }
template struct box<long>;
enum class kind : unsigned char { a, b };
bool is(kind k, const point &&p, int derived::*member, decltype(nullptr)) { return k == kind::b && p.x > 0 && member; }
}
extern "C" void __cxa_pure_virtual() {}
void operator delete(void *, unsigned long) {}
extern "C" { void *__gxx_personality_v0, *_ZTVN10__cxxabiv117__class_type_infoE[3], *_ZTVN10__cxxabiv120__si_class_type_infoE[3]; }
