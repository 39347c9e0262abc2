// Texts of the C++ library as arguments.
#include <string>

std::string only = "only";

__attribute__((noinline)) unsigned long stop(const std::string &s, std::string v) { return s.size() + v.size(); }

int main() { return stop("short", std::string(40, 'x')) == 0; }
