// Outcomes of `Branch::move` (branch.hpp). Python reads them as sarrus._core.branch_outcome.
#pragma once

namespace sarrus::branch_outcome {

constexpr double jumped = 1.0;  // the last configuration was reached by one jump, and lies on the branch
constexpr double followed = 2.0;  // the branch was traced by steps, up to the last input or to the branch's end
// one jump was made; no branch is defined, because the inputs leave motions free, or because the initial configuration is singular
constexpr double free = 0.0;
// one jump was made, which may have left the branch; tracing was impossible, because the initial targets are unknown
constexpr double doubtful = -1.0;
constexpr double off_loops = -2.0;  // one jump was made from an initial configuration with open loops

constexpr int numbers = 4;  // number of outputs after the configuration

}  // namespace sarrus::branch_outcome
