// Which instruction set levels the processor that this runs on has.
#pragma once

#include <cstring>

namespace sarrus {

/// Of "x86-64-v3" and "x86-64-v4"; no other level is known.
inline bool processor_supports([[maybe_unused]] const char* level) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (std::strcmp(level, "x86-64-v3") == 0) return v3;
  if (std::strcmp(level, "x86-64-v4") == 0)
    return v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd");
#endif
  return false;
}

/// The level that the including file is compiled for, as far as a lesser processor would stop at its instructions.
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
