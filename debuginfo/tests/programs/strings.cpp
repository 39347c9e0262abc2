// Strings of the C++ library as arguments. They are made from iterators, so the program has the constructor itself.
#include <string>
#include <vector>

__attribute__((noinline)) unsigned long stop(const std::string &s, std::string v) { return s.size() + v.size(); }

int main()
{
  std::vector<char> many(40, 'x'), few{'f', 'e', 'w'};
  return stop(std::string(few.begin(), few.end()), std::string(many.begin(), many.end())) == 0;
}
