// Status of a solution, determined by its relative residual.
#pragma once

#include "../loops/constraints.hpp"
#include "../mechanism/status.hpp"

namespace sarrus {

/// Return no_answer if the equation leaves a motion undetermined; otherwise `status` if its relative residual exceeds `most`, else 0.
template <class T> SARRUS_INLINE T verdict_beyond(const T& error, const T& most, Status status) {
  const T outcome = select(error > most, T(status), T(0.0));
  return select(error < T(tolerances::undetermined), outcome, T(no_answer));
}
/// Return inconsistent_constraints if the relative residual is too large to be due to rounding, else 0.
template <class T> SARRUS_INLINE T verdict(const T& error) {
  return verdict_beyond(error, tolerance<T>(tolerances::contradiction, tolerances::contradiction_in_single),
                        inconsistent_constraints);
}
/// Return off_loops if the state is off the loops; but inconsistent_constraints if the loops are closed and the rows contradict one another.
template <class T> SARRUS_INLINE T verdict(const T& error, const OffLoops<T>& off) {
  const T outcome = verdict(error);
  return select(off.fault > select(outcome > T(0.0), T(1.0), T(0.0)), T(off_loops), outcome);
}

/// Return off_loops or inconsistent_constraints as above; if neither applies, no_answer if the rank of the rows depends on rounding, else 0.
template <class T> SARRUS_INLINE T verdict_of_solution(const T& error, const OffLoops<T>& off) {
  const T status = verdict(error, off);
  return select(both(error > tolerance<T>(tolerances::unresolved, tolerances::unresolved_in_single), status < T(no_answer)),
                T(no_answer), status);
}

}  // namespace sarrus
