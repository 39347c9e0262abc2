// A string of the C++ library that only the library instantiates: clang only declares its type.
#include <string>

std::string text = "only";

__attribute__((noinline)) char stop(const std::string &s) { return s[0]; }

int main() { return stop(text) == 0; }
