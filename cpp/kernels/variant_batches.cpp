// Kernels for the most frequent operations on variants, for several variants in lanes. Other operations evaluate variants one by one.
#include "loop_operations.hpp"
#include "packets.hpp"
#include "shared.hpp"
#include "tree_operations.hpp"
#include "variant_copies.hpp"

namespace sarrus {

SARRUS_SHARED(extern, OwnLanes)
SARRUS_SHARED_JOINTS(extern, OwnLanes)

namespace {

template <Operation op>
void side_by_side(const VariantNumbers& numbers, const std::int64_t* variant, std::int64_t states, const Parameters& p,
                  const Rows& rows, std::int64_t begin, std::int64_t end) {
  constexpr int width = OwnLanes::width;
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  VariantLanes<width> copy(numbers, p, arena);
  in_packets<width, true>(
      &Kernel<op>::template run<OwnLanes>, copy.tree(), copy.parameters(), rows, begin, end, [&](std::int64_t i) {
        copy.take(
            static_cast<int>(std::min<std::int64_t>(width, end - i)), [&](int l) { return variant[(i + l) / states]; },
            op == Operation::inverse_dynamics || op == Operation::bias_forces ? VariantNumbers::newton_euler
                                                                              : VariantNumbers::recursions);
      });
}

}  // namespace

void add_variant_batches(KernelTable& table) {
#define SARRUS_ADD(name) table.variants[static_cast<int>(Operation::name)] = side_by_side<Operation::name>;
  SARRUS_ADD(inverse_dynamics)
  SARRUS_ADD(mass_matrix)
  SARRUS_ADD(bias_forces)
  SARRUS_ADD(pose)
  SARRUS_ADD(velocity)
  SARRUS_ADD(acceleration)
  SARRUS_ADD(jacobian)
  SARRUS_ADD(center_of_mass)
  SARRUS_ADD(kinetic_energy)
  SARRUS_ADD(potential_energy)
  SARRUS_ADD(integrate)
  SARRUS_ADD(difference)
  SARRUS_ADD(forward_dynamics)
  SARRUS_ADD(constraint_jacobian)
  SARRUS_ADD(constraint_residual)
  SARRUS_ADD(velocity_by_mass)
  SARRUS_ADD(velocity_plain)
  SARRUS_ADD(configuration_by_mass)
  SARRUS_ADD(configuration_plain)
  SARRUS_ADD(least_motion)
  SARRUS_ADD(close)
  SARRUS_ADD(branch)
  SARRUS_ADD(actuator_efforts)
  SARRUS_ADD(loop_joint_coordinates)
#undef SARRUS_ADD
}

}  // namespace sarrus
