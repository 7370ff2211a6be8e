// Thresholds of rounding errors.
#pragma once

namespace sarrus {

/// Return a tolerance of rounding errors as a scalar; `in_single`: its value in code for single precision (recording/symbolic.hpp).
template <class T> inline T tolerance(double x, [[maybe_unused]] double in_single) { return T(x); }

}  // namespace sarrus
