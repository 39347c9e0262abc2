// Parts of the standard library, used so that their code ends up in the program.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shop {
struct item { std::string name; double price; };
class basket {
public:
    explicit basket(int limit) : limit(limit) {}
    virtual ~basket() {}
    bool add(const item &i, int count = 1);
    template <typename F> double total(F price) const;
    virtual operator bool() const { return !held.empty(); }
protected:
    std::map<std::string, std::pair<item, int>> held;
    int limit;
};
bool basket::add(const item &i, int count) {
    if ((int)held.size() >= limit) return false;
    held[i.name] = {i, count};
    return true;
}
template <typename F> double basket::total(F price) const {
    double sum = 0;
    for (auto &[name, entry] : held) sum += price(entry.first) * entry.second;
    return sum;
}
struct left { virtual int side() { return 1; } };
struct right : virtual left { int side() override { return 2; } };
namespace { std::optional<item> find(const std::vector<item> &all, const std::string &name) {
    for (auto &i : all) if (i.name == name) return i;
    return std::nullopt;
} }
}
int call(std::function<int(int)> f, std::unique_ptr<shop::left> l) { return f(l->side()); }
int main() {
    shop::basket basket(3);
    std::vector<shop::item> items{{"apple", 1.5}, {"pear", 2.5}};
    if (auto found = shop::find(items, "pear")) basket.add(*found, 2);
    double sum = basket.total([](const shop::item &i) { return i.price; });
    return call([sum](int n) { return n + (int)sum; }, std::make_unique<shop::right>()) == 7 && basket ? 0 : 1;
}
