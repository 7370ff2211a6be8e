#include "effective_inertia.hpp"

#include <limits>

#include "../kernels/batch.hpp"

namespace sarrus {
namespace {

/// Largest effective inertia, relative to the inertia without the loops. If the ratio is larger, the loops lock these velocities.
constexpr double most_inertia = 1e6;

/// Results of an operation for all configurations, one row each; NaN for configurations without a result.
class AllStates {
 public:
  using Input = StateFunctions::Repeated;

  AllStates(const StateFunctions& functions, std::int64_t count) : functions_(functions), count_(count) {}

  RowMajor operator()(Operation operation, std::initializer_list<Input> inputs, int size) const {
    const Mechanism& mechanism = functions_.mechanism();
    const KernelTable& kernels = functions_.kernels();
    const int op = static_cast<int>(operation);
    RowMajor out(count_, size);
    std::vector<signed char> status(static_cast<std::size_t>(count_));
    Rows rows{};
    int k = 0;
    for (const Input& input : inputs) {
      rows.in[k] = input.data, rows.in_size[k] = input.size, rows.in_step[k] = input.same ? 0 : input.size;
      ++k;
    }
    rows.out = out.data(), rows.out_size = size, rows.status = status.data();
    const Parameters parameters = {{}, 0, nullptr, false};
    if (count_ == 1 && !mechanism.variants()) {
      if (kernels.single[op](mechanism.tree(), parameters, rows.in, nullptr, rows.out) != fine)
        out.setConstant(std::numeric_limits<double>::quiet_NaN());
      return out;
    }
    const bool exceeds_cache = leaves_the_cache(mechanism.tree(), kernels.lanes);
    Batch batch{mechanism,
                (exceeds_cache ? kernels.each : kernels.many)[op],
                kernels.each[op],
                kernels.variants[op],
                kernels.lanes,
                parameters,
                rows,
                count_,
                {},
                false,
                false,
                false};
    batch.is_configuration[0] = true;
    batch.run(1, [] { return false; });
    return out;
  }

 private:
  const StateFunctions& functions_;
  std::int64_t count_;
};

}  // namespace

RowMajor effective_inertia(const StateFunctions& functions, const std::vector<std::vector<int>>& groups, const double* q,
                           std::int64_t count, const RowsOfState& rows) {
  const Tree& tree = functions.tree();
  const auto& variants = functions.mechanism().variant_indices();
  const auto states = functions.mechanism().variants() ? static_cast<std::int64_t>(variants.size()) : count;
  const bool same = count == 1;
  const AllStates evaluate(functions, states);
  const int nv = tree.nv, numbers = tree.loops.pfaffian_values;
  std::vector<double> row_values(static_cast<std::size_t>(count * numbers));
  for (std::int64_t i = 0; numbers && i < count; ++i) rows(q + i * tree.nq, row_values.data() + i * numbers);

  const Vector rest = Vector::Zero(nv);
  const StateFunctions::Repeated at{q, tree.nq, same}, still{rest.data(), nv, true}, no_time{nullptr, 1, true},
      values{numbers ? row_values.data() : nullptr, numbers, same};
  const auto accelerations = [&](const StateFunctions::Repeated& force) {
    return evaluate(Operation::forward_dynamics, {at, still, force, no_time, values}, nv);
  };
  const RowMajor unforced = accelerations(still), masses = evaluate(Operation::mass_matrix, {at}, nv * nv);
  bool uses_loop_joints = false;
  for (const std::vector<int>& group : groups)
    for (const int iv : group) uses_loop_joints |= iv >= nv;
  RowMajor loop_jacobian;
  if (uses_loop_joints) loop_jacobian = evaluate(Operation::loop_joint_jacobian, {at, no_time}, tree.loop_nv * nv);

  RowMajor inertia(static_cast<Eigen::Index>(groups.size()), states), along(states, nv), force(states, nv);
  Vector free(states), push(states);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    along.setZero();
    for (const int iv : groups[g])
      if (iv < nv)
        along.col(iv).array() += 1.0;
      else
        along += loop_jacobian.middleCols((iv - nv) * nv, nv);
    for (std::int64_t i = 0; i < states; ++i) {
      free(i) = along.row(i) * Eigen::Map<const RowMajor>(masses.row(i).data(), nv, nv) * along.row(i).transpose();
      // the test force has the magnitude of the applied forces, because the effect of 1 N on a heavy mechanism is below rounding errors
      const double acting = free(i) * (1.0 + std::abs(unforced.row(i).dot(along.row(i))));
      push(i) = free(i) > 0.0 ? acting : 1.0;
      force.row(i) = push(i) * along.row(i);
    }
    const RowMajor pushed = accelerations({force.data(), nv, false});
    for (std::int64_t i = 0; i < states; ++i) {
      const double effective = push(i) / (pushed.row(i) - unforced.row(i)).dot(along.row(i));
      // the effective inertia of a locked joint is infinite
      const bool moves = std::isfinite(effective) && effective > 0.0 && effective < most_inertia * free(i);
      inertia(static_cast<Eigen::Index>(g), i) = moves ? effective : free(i) > 0.0 ? free(i) : 1.0;
    }
  }
  return inertia;
}

}  // namespace sarrus
