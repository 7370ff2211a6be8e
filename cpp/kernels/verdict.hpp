// What the relative residual of a solve says about its answer, as a status.
#pragma once

#include "../loops/constraints.hpp"
#include "../mechanism/status.hpp"

namespace sarrus {

/// 2 where the equation leaves a motion open; otherwise `status` where its relative residual is larger than `most`.
template <class T> SARRUS_INLINE T verdict_beyond(const T& error, const T& most, Status status) {
  const T beyond = select(error > most, T(status), T(0.0));
  return select(error < T(tolerances::undetermined), beyond, T(no_answer));
}
/// 3 where the relative residual is that of a contradiction.
template <class T> SARRUS_INLINE T verdict(const T& error) {
  return verdict_beyond(error, tolerance<T>(tolerances::contradiction, tolerances::contradiction_in_single), contradictory);
}
/// 4 where the state is off the loops. Where they are closed and no velocity is allowed, that comes first.
template <class T> SARRUS_INLINE T verdict(const T& error, const OffLoops<T>& off) {
  const T said = verdict(error);
  return select(off.fault > select(said > T(0.0), T(1.0), T(0.0)), T(off_loops), said);
}

/// And 2 where rounding decides what is independent.
template <class T> SARRUS_INLINE T verdict_of_solution(const T& error, const OffLoops<T>& off) {
  const T status = verdict(error, off);
  return select(both(error > tolerance<T>(tolerances::unresolved, tolerances::unresolved_in_single), status < T(no_answer)),
                T(no_answer), status);
}

}  // namespace sarrus
