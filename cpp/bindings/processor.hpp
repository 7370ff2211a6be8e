// Instruction set levels of the processor.
#pragma once

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace sarrus {

/// Return true if the processor supports "x86-64-v3" or "x86-64-v4". This function executes the cpuid instruction, because `__builtin_cpu_supports`
/// always returns false with compilers whose run-time library does not initialise it.
inline bool processor_supports([[maybe_unused]] const char* level) {
#if defined(__x86_64__)
  const auto bit = [](unsigned word, int index) { return (word >> index & 1u) != 0; };
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !bit(c, 12) || !bit(c, 27) || !bit(c, 28)) return false;  // FMA, XGETBV, AVX
  unsigned saved = 0,
           high = 0;  // bit set of the registers that the operating system saves: 6 is required for AVX, 0xe6 for AVX-512
  __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  const bool v3 = (saved & 6) == 6 && bit(b, 5) && bit(b, 8);  // AVX2, BMI2
  if (std::strcmp(level, "x86-64-v3") == 0) return v3;
  if (std::strcmp(level, "x86-64-v4") == 0)  // F, DQ, CD, BW, VL of AVX-512
    return v3 && (saved & 0xe6) == 0xe6 && bit(b, 16) && bit(b, 17) && bit(b, 28) && bit(b, 30) && bit(b, 31);
#endif
  return false;
}

/// Return the instruction set level for which the including file is compiled, if this processor does not support it; otherwise null.
inline const char* compiled_level() {
#if defined(__AVX512F__)
  return "x86-64-v4";
#elif defined(__AVX__) || defined(__FMA__)
  return "x86-64-v3";
#else
  return "baseline";
#endif
}

}  // namespace sarrus
