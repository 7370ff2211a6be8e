// Status of a state, or of a run of a simulation. Kernels return it lane by lane, so that it is a number there.
#pragma once

namespace sarrus {

enum Status : signed char {
  fine = 0,
  invalid_state = 1,         // the state is not finite, or its quaternion is not a rotation
  no_answer = 2,       // no inertia to divide by, or loops that steps do not close
  inconsistent_constraints = 3,   // no motion satisfies the loops, or no efforts produce the motion
  off_loops = 4,       // the loops are open, or forbid the velocity
  no_convergence = 5,  // of an implicit step
  diverged = 6,
  interrupted = 7,
  caller_failed = 8,  // a function of the caller raised an error
  other_branch = 9,   // loops are closed, but on another branch than that of the start, or possibly so
  exhausted = 10      // more contacts in a step than its solver may work for
};

}  // namespace sarrus
