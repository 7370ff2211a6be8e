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
  exhausted = 10  // a step has so many contacts that the solver exceeds its limit of work
};

/// Return the meaning of a status, for messages.
inline const char* meaning(int status) {
  switch (status) {
    case invalid_state: return "the state is not finite, or its quaternion is not a rotation";
    case no_answer: return "a degree of freedom has no inertia, or the loops cannot be closed";
    case inconsistent_constraints: return "the constraints contradict one another";
    case off_loops: return "the loops are open, or the velocity violates them";
    case no_convergence: return "an iteration did not converge";
    case diverged: return "the state became infinite";
    case interrupted: return "interrupted";
    case caller_failed: return "a function of the caller raised an error";
    case other_branch: return "the loops are closed, but perhaps on another branch";
    case exhausted: return "the limit of the contact solver's work is exceeded";
    default: return "the result is not finite";
  }
}

}  // namespace sarrus
