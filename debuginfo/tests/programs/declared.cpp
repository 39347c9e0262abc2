// A text of the C++ library that only the library makes: clang says no more than that there is such a type.
#include <string>

std::string text = "only";

__attribute__((noinline)) char stop(const std::string &s) { return s[0]; }

int main() { return stop(text) == 0; }
