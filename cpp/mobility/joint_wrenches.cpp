#include "joint_wrenches.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../kernels/batch.hpp"
#include "../loops/tolerances.hpp"
#include "actuation.hpp"
#include "free_motions.hpp"

namespace sarrus {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr const char* component_names[6] = {"moment x", "moment y", "moment z", "force x", "force y", "force z"};
/// Largest number of entries in all Jacobians of a chunk, so that they remain in the cache.
constexpr std::int64_t most_entries = 1 << 16;

using Matrices = Eigen::Map<const RowMajor>;
using Numbers = Eigen::Map<Vector>;

/// Return the indices of the joints' velocities among all velocities: those of the tree, then those of loop joints.
std::vector<int> places(const Mechanism& m, const std::vector<int>& joints) {
  std::vector<int> first(m.joints().size()), all;
  for (std::size_t j = 0, next = static_cast<std::size_t>(m.tree().nv); j < first.size(); ++j) {
    const bool closes = m.joints()[j].closes_a_loop;
    first[j] = closes ? static_cast<int>(next) : m.joints()[j].iv;
    if (closes) next += static_cast<std::size_t>(m.description().joints[j].nv);
  }
  for (const int j : joints)
    for (int k = 0; k < m.description().joints[j].nv; ++k) all.push_back(first[j] + k);
  return all;
}

}  // namespace

JointWrenchRows::JointWrenchRows(const Mechanism& m, const KernelTable& kernels, const std::vector<int>& joints, bool determinate)
    : kernels_(kernels), motors_(places(m, joints)), carriers_(places(m, actuated_joints(m))), determinate_(determinate) {
  const int nv = m.tree().nv;
  closing_ = std::any_of(motors_.begin(), motors_.end(), [nv](int k) { return k >= nv; });
  constrained_ = m.tree().loops.constraints > 0;
}

/// A few consecutive states of a batch, with memory for the results of kernels.
class JointWrenchRows::Chunk {
 public:
  Chunk(const JointWrenchRows& of, const Tree& tree, const Parameters& p, const Rows& rows, std::int64_t begin, std::int64_t end)
      : joint_wrenches_(of),
        tree_(tree),
        p_(p),
        rows_(rows),
        begin_(begin),
        count_(end - begin),
        nv_(tree.nv),
        all_(tree.nv + tree.loop_nv),
        nc_(tree.loops.rows),
        loads_(6 * (tree.bodies - 1 + tree.loops.constraints)),
        arena_(thread_arena()),
        scope_(arena_) {
    for (int k = 0; k < max_inputs; ++k)
      if (rows.in[k]) in_[k] = {rows.in[k] + begin * rows.in_step[k], rows.in_step[k], rows.in_size[k]};
    wrench_ = arena_.take<const double*>(p.wrenches);
    for (int k = 0; k < p.wrenches; ++k) wrench_[k] = rows.wrench[k] + begin * rows.wrench_step[k];
    ignored_ = arena_.take<signed char>(count_), status_ = rows.status + begin;
    std::fill(status_, status_ + count_, static_cast<signed char>(fine));
    efforts_ = zeros(all_), acting_ = zeros(all_ - nv_);
  }

  void compute() {
    double *multipliers = nullptr, *least_pivot = nullptr;
    if (!joint_wrenches_.constrained_)
      efforts_of_tree();
    else if (multipliers_.data)
      multipliers = efforts_behind();
    else
      multipliers = efforts_of_motors(least_pivot);
    double* loads = room(loads_);
    const Given of_motion[] = {q_, v_, a_, given(multipliers, nc_), given(acting_, all_ - nv_), time_};
    evaluate(Operation::joint_loads, of_motion, loads, loads_, true);
    const double* shared = nc_ > 0 && !determinate(least_pivot) ? shared_reactions(multipliers, loads, least_pivot) : nullptr;
    for (std::int64_t i = 0; i < count_; ++i) {
      double* out = std::copy_n(efforts_ + i * all_, all_, rows_.out + (begin_ + i) * rows_.out_size);
      if (shared)
        std::copy_n(shared + i * (nc_ + loads_), nc_ + loads_, out);
      else
        std::copy_n(loads + i * loads_, loads_, std::copy_n(multipliers + i * nc_, nc_, out));
    }
  }

 private:
  /// Input rows of the states of the chunk; `data` is the row of the first state.
  struct Given {
    const double* data = nullptr;
    std::int64_t step = 0;
    int size = 0;
  };
  static Given given(const double* data, int size) { return {data, size, size}; }
  static const double* at(const Given& x, std::int64_t i) { return x.data ? x.data + i * x.step : nullptr; }
  double* room(int size) { return arena_.take<double>(static_cast<std::size_t>(count_) * static_cast<std::size_t>(size)); }
  double* zeros(int size) {
    double* x = room(size);
    std::fill(x, x + count_ * size, 0.0);
    return x;
  }
  Parameters without_wrenches() const {
    Parameters p = p_;
    p.wrenches = 0;
    return p;
  }

  template <std::size_t n>
  signed char* evaluate(Operation operation, const Given (&inputs)[n], double* out, int size, bool loads = false) {
    Rows rows{};
    for (std::size_t k = 0; k < n; ++k)
      rows.in[k] = inputs[k].data, rows.in_step[k] = inputs[k].step, rows.in_size[k] = inputs[k].size;
    rows.wrench = wrench_, rows.wrench_step = rows_.wrench_step;
    rows.out = out, rows.out_size = size, rows.status = ignored_;
    const int op = static_cast<int>(operation);
    (count_ == 1 ? joint_wrenches_.kernels_.each : joint_wrenches_.kernels_.many)[op](tree_, loads ? p_ : without_wrenches(),
                                                                                      rows, 0, count_);
    return rows.status;
  }

  bool determinate(const double* least_pivot) const {
    return least_pivot ? *std::min_element(least_pivot, least_pivot + count_) > tolerances::independent
                       : joint_wrenches_.determinate_;
  }
  const double* shared_reactions(const double* multipliers, const double* loads, const double* least_pivot) {
    double* shared = room(nc_ + loads_);
    const Given of_loads[] = {q_, given(multipliers, nc_), given(loads, loads_), {}, given(least_pivot, 1), time_, values_};
    evaluate(Operation::least_reactions, of_loads, shared, nc_ + loads_);
    return shared;
  }

  void efforts_of_tree() {
    inverse_dynamics(efforts_);
    for (std::int64_t i = 0; forces_.data && i < count_; ++i)
      for (int k = 0; k < nv_; ++k) efforts_[i * nv_ + k] -= at(forces_, i)[k];
  }

  void inverse_dynamics(double* tau) {
    const Given of_motion[] = {q_, v_, a_};
    evaluate(Operation::inverse_dynamics, of_motion, tau, nv_, true);
  }
  /// Return the Jacobian of the loop joints (loop_nv, nv) of each state.
  const double* loop_jacobians() {
    double* J = room((all_ - nv_) * nv_);
    const Given of_place[] = {q_, time_};
    evaluate(Operation::loop_joint_jacobian, of_place, J, (all_ - nv_) * nv_);
    return J;
  }
  /// Add S f to tau (nv), for forces f along all joints, including loop joints.
  void add_along_tree(const double* J, std::int64_t i, const double* f, double* tau) const {
    for (int k = 0; k < nv_; ++k) tau[k] += f[k];
    for (int r = nv_; r < all_; ++r)
      if (f[r] != 0.0)
        for (int k = 0; k < nv_; ++k) tau[k] += J[(i * (all_ - nv_) + r - nv_) * nv_ + k] * f[r];
  }

  /// Compute the efforts of the mechanism's motors; return the multipliers of the motion that they produce.
  double* efforts_of_motors(double*& least_pivot) {
    const int nu = tree_.loops.actuators;
    double *u = room(nu), *tau = zeros(nv_);
    const Given of_motion[] = {q_, v_, a_, time_, values_};
    std::copy_n(evaluate(Operation::actuator_efforts, of_motion, u, nu, true), count_, status_);
    bool across = false;
    for (std::int64_t i = 0; i < count_; ++i)
      for (int k = 0; k < nu; ++k) {
        const int place = joint_wrenches_.carriers_[k];
        efforts_[i * all_ + place] = u[i * nu + k];
        if (place >= nv_) acting_[i * (all_ - nv_) + place - nv_] = u[i * nu + k], across = true;
      }
    const double* J = across ? loop_jacobians() : nullptr;
    for (std::int64_t i = 0; i < count_; ++i)
      if (across)
        add_along_tree(J, i, efforts_ + i * all_, tau + i * nv_);
      else
        std::copy_n(efforts_ + i * all_, nv_, tau + i * nv_);

    const int size = nv_ + nc_ + 3;
    double *motion = room(size), *multipliers = room(nc_);
    least_pivot = room(1);
    const Given of_forces[] = {q_, v_, given(tau, nv_), time_, values_};
    const signed char* status = evaluate(Operation::constrained_motion, of_forces, motion, size, true);
    for (std::int64_t i = 0; i < count_; ++i) {
      double *x = motion + i * size, *mu = multipliers + i * nc_;
      std::copy_n(x + nv_, nc_, mu), least_pivot[i] = x[size - 1];
      if (status_[i] != fine || (status[i] == fine && finite(x, size))) continue;
      by_statics(i, tau + i * nv_, mu), least_pivot[i] = 0.0;
    }
    return multipliers;
  }
  /// Compute the multipliers from equilibrium: they balance the forces that motor efforts S u do not balance. This is needed for structures without
  /// degrees of freedom, such as a truss.
  void by_statics(std::int64_t i, const double* tau, double* mu) const {
    std::vector<double> required(nv_), J(static_cast<std::size_t>(nc_) * nv_);
    const double *motion[max_inputs] = {at(q_, i), at(v_, i), at(a_, i)},
                 *place[max_inputs] = {at(q_, i), at(time_, i), at(values_, i)};
    std::vector<const double*> wrench(p_.wrenches);
    for (int k = 0; k < p_.wrenches; ++k) wrench[k] = wrench_[k] + i * rows_.wrench_step[k];
    const auto& single = joint_wrenches_.kernels_.single;
    single[static_cast<int>(Operation::inverse_dynamics)](tree_, p_, motion, wrench.data(), required.data());
    single[static_cast<int>(Operation::constraint_jacobian)](tree_, without_wrenches(), place, nullptr, J.data());
    const Numbers unit(const_cast<double*>(tree_.unit), nv_);
    if (!finite(required.data(), nv_) || !finite(J.data(), nc_ * nv_)) return;
    Vector left = Numbers(required.data(), nv_) - Eigen::Map<const Vector>(tau, nv_);
    left.array() *= unit.array();
    Numbers(mu, nc_) = least_solution(unit.asDiagonal() * Matrices(J.data(), nc_, nv_).transpose(), left, tolerances::negligible);
  }

  /// Compute the efforts of motors from the caller's multipliers; return these multipliers.
  double* efforts_behind() {
    double *required = room(nv_), *multipliers = room(nc_), *J = room(nc_ * nv_);
    inverse_dynamics(required);
    const Given of_place[] = {q_, time_, values_};
    evaluate(Operation::constraint_jacobian, of_place, J, nc_ * nv_);
    const double* across = forces_.data || joint_wrenches_.closing_ ? loop_jacobians() : nullptr;
    std::vector<double> tau(nv_), negative(all_), size(nv_);
    for (std::int64_t i = 0; i < count_; ++i) {
      const double *f = at(forces_, i), *needed = required + i * nv_, *mu = at(multipliers_, i);
      std::copy_n(mu, nc_, multipliers + i * nc_);
      for (int k = 0; k < nv_; ++k) tau[k] = 0.0;
      for (int r = 0; r < nc_; ++r)
        for (int k = 0; k < nv_; ++k) tau[k] += J[(i * nc_ + r) * nv_ + k] * mu[r];
      for (int k = 0; k < nv_; ++k) size[k] = std::abs(needed[k]) + std::abs(tau[k]), tau[k] = needed[k] - tau[k];
      if (f) {
        for (int k = 0; k < all_; ++k) negative[k] = -f[k];
        add_along_tree(across, i, negative.data(), tau.data());
        std::copy_n(f + nv_, all_ - nv_, acting_ + i * (all_ - nv_));
      }
      double* effort = efforts_ + i * all_;
      if (!joint_wrenches_.closing_)
        for (const int place : joint_wrenches_.motors_) effort[place] = tau[place];
      else
        share(across, i, tau, *std::max_element(size.begin(), size.end()), effort);
    }
    return multipliers;
  }
  /// Set u = S^+ tau.
  void share(const double* across, std::int64_t i, const std::vector<double>& tau, double size, double* effort) {
    const int nu = static_cast<int>(joint_wrenches_.motors_.size());
    Matrix S = Matrix::Zero(nv_, nu);
    for (int k = 0; k < nu; ++k)
      if (const int place = joint_wrenches_.motors_[k]; place < nv_)
        S(place, k) = 1.0;
      else
        S.col(k) = Eigen::Map<const Vector>(across + (i * (all_ - nv_) + place - nv_) * nv_, nv_);
    const Eigen::Map<const Vector> needed(tau.data(), nv_);
    Vector u = Vector::Constant(nu, nan);
    if (finite(S.data(), S.size())) u = least_solution(S, needed, tolerances::exact);
    if ((needed - S * u).cwiseAbs().maxCoeff() > tolerances::allowed * size) status_[i] = other_forces;
    for (int k = 0; k < nu; ++k) {
      const int place = joint_wrenches_.motors_[k];
      effort[place] = u(k);
      if (place >= nv_) acting_[i * (all_ - nv_) + place - nv_] += u(k);
    }
  }

  const JointWrenchRows& joint_wrenches_;
  const Tree& tree_;
  const Parameters& p_;
  const Rows& rows_;
  const std::int64_t begin_, count_;
  const int nv_, all_, nc_, loads_;
  Arena& arena_;
  Arena::Scope scope_;
  const double** wrench_;
  signed char *ignored_, *status_;
  double *efforts_, *acting_;  // efforts of motors along all joints; forces of motors and other elements along loop joints
  Given in_[max_inputs];
  const Given &q_ = in_[0], &v_ = in_[1], &a_ = in_[2], &multipliers_ = in_[3], &forces_ = in_[4], &time_ = in_[5],
              &values_ = in_[6];
};

void JointWrenchRows::operator()(const Tree& tree, const Parameters& p, const Rows& rows, std::int64_t begin,
                                 std::int64_t end) const {
  const std::int64_t entries = std::int64_t(tree.loops.rows + tree.loop_nv) * tree.nv + 1;
  const std::int64_t lanes = kernels_.lanes, most = std::clamp<std::int64_t>(most_entries / entries / lanes * lanes, lanes, 64);
  for (; begin < end; begin += most) Chunk(*this, tree, p, rows, begin, std::min(end, begin + most)).compute();
}

namespace {

/// Return the same mechanism with the same spanning tree, in which only these joints have motors.
Mechanism driven_by(const Mechanism& m, const std::vector<int>& joints) {
  Description d = m.description();
  for (std::size_t j = 0; j < d.joints.size(); ++j) {
    d.joints[j].close_loop = m.joints()[j].closes_a_loop, d.joints[j].keep_in_tree = !d.joints[j].close_loop;
    d.joints[j].actuated = std::count(joints.begin(), joints.end(), static_cast<int>(j));
  }
  return Mechanism(std::move(d));
}

}  // namespace

JointWrenches joint_wrenches(const StateFunctions& functions, std::int64_t states, const double* q, const double* v,
                             const double* a, const JointWrenchOptions& options, const RowsOfState& values) {
  const Mechanism& m = functions.mechanism();
  const Tree& tree = m.tree();
  const Loops& loops = tree.loops;
  const int nc = loops.rows;
  const bool constrained = loops.constraints > 0, given = constrained && !options.multipliers.empty();
  std::vector<int> joints;
  if (!constrained)
    for (std::size_t j = 0; j < m.joints().size(); ++j) joints.push_back(static_cast<int>(j));
  else
    joints = options.actuated ? joints_by_names(m, *options.actuated) : actuated_joints(m);
  if (constrained && !given && options.actuated) {
    const Mechanism driven = driven_by(m, joints);
    JointWrenchOptions own = options;
    own.actuated.reset();
    JointWrenches result = joint_wrenches({driven, functions.kernels()}, states, q, v, a, own, values);
    const auto place = [&](const auto& named) {  // order: as passed by the caller, then prescribed motions
      return std::find(options.actuated->begin(), options.actuated->end(), named.first);
    };
    std::stable_sort(result.efforts.begin(), result.efforts.end(),
                     [&](const auto& x, const auto& y) { return place(x) < place(y); });
    return result;
  }

  const int numbers = size_of_axis(*JointWrenchRows::axes, tree), first_load = tree.nv + tree.loop_nv + nc;
  std::vector<double> out(static_cast<std::size_t>(states * numbers)),
      rows_of_q(static_cast<std::size_t>(states * loops.pfaffian_values));
  for (std::int64_t i = 0; values && i < states; ++i) values(q + i * tree.nq, rows_of_q.data() + i * loops.pfaffian_values);
  Rows rows{};
  const auto add = [&](int k, const double* data, int count, bool same = false) {
    rows.in[k] = data, rows.in_size[k] = count, rows.in_step[k] = same ? 0 : count;
  };
  add(0, q, tree.nq), add(1, v, tree.nv), add(2, a, tree.nv);
  if (given) add(3, options.multipliers.data(), nc);
  if (options.time) add(5, &*options.time, 1, true);
  if (values) add(6, rows_of_q.data(), loops.pfaffian_values);
  std::vector<Frame> frames;
  std::vector<const double*> wrench;
  for (const Wrench& w : options.wrenches) frames.push_back(w.frame), wrench.push_back(w.value.data());
  const std::vector<std::int64_t> same(wrench.size(), 0);
  JointWrenches result;
  result.status.resize(static_cast<std::size_t>(states));
  rows.wrench = wrench.data(), rows.wrench_step = same.data();
  rows.out = out.data(), rows.out_size = numbers, rows.status = result.status.data();
  const Parameters p = {{}, static_cast<int>(frames.size()), frames.data(), true};
  const KernelTable& kernels = functions.kernels();
  const JointWrenchRows compute(m, kernels, joints, false);
  Batch{m, compute, compute, nullptr, kernels.lanes, p, rows, states, {true}, false, false, false}.run(options.threads,
                                                                                                       [] { return false; });
  if (std::count(result.status.begin(), result.status.end(), other_forces)) throw ModelError(JointWrenchRows::other_forces_act);

  const Eigen::Map<const RowMajor> all(out.data(), states, numbers);
  for (const auto& [name, place] : load_places(m)) result.wrenches.push_back({name, all.middleCols(first_load + 6 * place, 6)});
  const std::size_t closing = m.constraints().size() - m.description().constraints.size();
  for (const int j : joints)
    if (const std::vector<int> at = places(m, {j}); constrained || !at.empty())
      result.efforts.push_back({m.description().joints[j].name,
                                at.empty() ? Matrix(states, 0) : Matrix(all.middleCols(at[0], static_cast<int>(at.size())))});
  for (std::size_t i = closing; i < m.constraints().size(); ++i) {
    const Constraint& c = loops.constraint[m.constraints()[i]];
    if (std::holds_alternative<Coupler>(c.kind) && c.driven)
      result.efforts.push_back({m.constraint_name(static_cast<int>(i)), all.middleCols(first_load - nc + c.row, c.rows)});
  }
  return result;
}

Named<Names> indeterminate_reactions(const StateFunctions& functions, const double* q, const std::optional<double>& time,
                                     RowsOfState rows) {
  Named<Names> all;
  if (functions.tree().loops.rows == 0) return all;
  for (const auto& [name, sizes] : open_reactions(functions, q, time, std::move(rows))) {
    Names components;
    for (int k = 0; k < 6; ++k)
      if (sizes(k) > tolerances::present) components.push_back(component_names[k]);
    if (!components.empty()) all.push_back({name, components});
  }
  return all;
}

}  // namespace sarrus
