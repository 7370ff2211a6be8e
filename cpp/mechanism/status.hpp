// Status of a state, or of a simulation. Kernels return it as a floating-point number, because lanes contain floating-point numbers.
#pragma once

namespace sarrus {

enum Status : signed char {
  fine = 0,
  invalid_state = 1,  // the state is not finite, or its quaternion is not a rotation
  no_answer = 2,  // the result would be divided by a zero inertia, or the loops could not be closed
  inconsistent_constraints = 3,  // no motion satisfies the loops, or no efforts produce the motion
  off_loops = 4,  // the loops are open, or the velocity violates them
  no_convergence = 5,  // an implicit step, or a solver, did not converge
  diverged = 6,
  interrupted = 7,
  caller_failed = 8,  // a function of the caller raised an error
  other_branch = 9,  // the loops are closed, but perhaps on another branch than that of the initial configuration
  exhausted = 10  // a step has so many contacts that the limit of the solver's work is exceeded
};

}  // namespace sarrus
