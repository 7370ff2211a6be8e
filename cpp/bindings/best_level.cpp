// Program that prints the best instruction set level of the processor on which the build runs, for CMake.
#include <cstdio>
#include <initializer_list>

#include "processor.hpp"

int main() {
  for (const char* level : {"x86-64-v4", "x86-64-v3"})
    if (sarrus::processor_supports(level)) {
      std::printf("%s", level + sizeof("x86-64-") - 1);
      return 0;
    }
  std::printf("baseline");
}
