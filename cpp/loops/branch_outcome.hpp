// Outcomes of `Branch::move` (branch.hpp). Python reads them as sarrus._core.branch_outcome.
#pragma once

namespace sarrus::branch_outcome {

constexpr double jumped = 1.0;  // in one jump that stays on the branch
constexpr double followed = 2.0;  // along the branch, up to its end
constexpr double free = 0.0;  // in one jump: no branch is determined, because motions remain or the start is singular
constexpr double doubtful = -1.0;  // a jump may leave the branch, and the targets of the start are not known
constexpr double off_loops = -2.0;  // in one jump, from a start that does not close the loops

constexpr int numbers = 4;  // after the configuration

}  // namespace sarrus::branch_outcome
