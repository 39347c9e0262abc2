// Containers before their constructors ran: the previous contents of the stack are not a vector.
#include <cstring>
#include <map>
#include <string>
#include <vector>

__attribute__((noinline)) void stop() { __asm__ volatile(""); }

struct Wide {
  std::string names[8];
  std::vector<std::string> all;
};

int main() {
  alignas(16) static unsigned char raw[64];
  alignas(16) static unsigned char wide_raw[64];
  auto &ss = *reinterpret_cast<std::vector<std::string> *>(raw);
  auto &nested = *reinterpret_cast<std::vector<std::vector<Wide>> *>(wide_raw);
  // The elements are the contents of `junk`, which are not strings.
  unsigned long first[3] = {reinterpret_cast<unsigned long>(&std::memcpy) & ~31ul, 0, 0};
  static unsigned long junk[4096];
  for (unsigned long n = 0; n < 4096; n++) junk[n] = n % 3 == 0 ? reinterpret_cast<unsigned long>(&junk[n & 7]) : n << 20;
  first[0] = reinterpret_cast<unsigned long>(junk);
  first[1] = first[2] = first[0] + 32 * 1024;
  std::memcpy(raw, first, sizeof first);
  first[1] = first[2] = first[0] + 24 * 1365;
  std::memcpy(wide_raw, first, sizeof first);
  std::vector<std::string> good = {"one", "two"};
  std::map<int, std::string> numbers = {{1, "first"}, {2, "second"}};
  stop();
  return static_cast<int>(ss.size() + nested.size() + good.size() + numbers.size()) & 1;
}
