// Thresholds that stand for rounding.
#pragma once

namespace sarrus {

/// A tolerance that stands for rounding, as a scalar; `in_single`: what it is in code for single precision (recording/record.hpp).
template <class T> inline T tolerance(double x, [[maybe_unused]] double in_single) { return T(x); }

}  // namespace sarrus
