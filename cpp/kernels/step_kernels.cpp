// Propagation of changes of a state forward through many steps, and of cotangents backward.
//
// Changes are propagated by derivative matrices (simulation/step_matrices.hpp), cotangents by vector-Jacobian products (step_pullback.hpp), and both
// through implicit steps by their solved equation (midpoint_sensitivity.hpp). If a step has no such products, derivatives along directions of its
// initial state are used (step_rates.hpp). For cotangents these are all directions or, with loops, as many as there are degrees of freedom. The
// directions are random vectors W, projected onto the loops: B = P W. Let c = B^T lambda be the products of the cotangent with the derivatives along
// B. Then lambda = U B (B^T U B)^-1 c, where the diagonal matrix U contains units that make entries comparable.
#include <algorithm>
#include <cmath>

#include "../elements/set.hpp"
#include "../loops/saddle_matrix.hpp"
#include "../mechanism/scatter.hpp"
#include "../simulation/reproduced.hpp"
#include "kernels.hpp"
#include "step_change.hpp"

namespace sarrus {
namespace {

using P = Abreast;
constexpr int together = directions_of<Rates>, abreast = width_of<P>;

/// Load the states of the runs i, i + 1, ... into lanes. If there are fewer runs than lanes, the last run is repeated.
void gather_runs(const double* from, std::int64_t run_step, int size, std::int64_t i, std::int64_t end, P* to) {
  for (int l = 0; l < abreast; ++l) {
    const double* row = from + std::min(i + l, end - 1) * run_step;
    for (int k = 0; k < size; ++k) lane(to[k], l) = row[k];
  }
}
void scatter_runs(const P* from, int size, std::int64_t i, std::int64_t end, double* to, std::int64_t run_step) {
  for (int l = 0; l < abreast && i + l < end; ++l)
    for (int k = 0; k < size; ++k) to[(i + l) * run_step + k] = lane(from[k], l);
}

/// Return the index after an array of parameters: that of the next field with parameters, or the number of all parameters.
int end_of_array(const ForceElements& elements, int first) {
  int end = elements.parameters;
  const auto cut = [&](int at) { end = at > first ? std::min(end, at) : end; };
  elements.each([&](const auto& element) {
    using Kind = std::decay_t<decltype(element)>;
    const_cast<Kind&>(element).fields([&](const char*, const auto& x, auto...) {  // fields() only reads here
      using X = std::decay_t<decltype(x)>;
      if constexpr (std::is_same_v<X, Number> || std::is_same_v<X, NumberArray>) cut(x.at);
      if constexpr (std::is_same_v<X, Range>) cut(x.lower.at);
    });
  });
  return end;
}

/// Mark the parameters that may have an effect between two times. In a table of efforts, these are the values at times in this interval, and the
/// values next to it on both sides.
void mark_acting(const ForceElements& elements, double from, double to, bool* acts) {
  elements.each([&](const auto& element) {
    using Kind = std::decay_t<decltype(element)>;
    constexpr bool is_held = std::is_same_v<Kind, ZeroOrderHold>, is_table = is_held || std::is_same_v<Kind, EffortTable>;
    const auto mark = [&](const auto& x) {
      using X = std::decay_t<decltype(x)>;
      if constexpr (std::is_same_v<X, Number>) acts[x.at] = true;
      if constexpr (std::is_same_v<X, Range>) acts[x.lower.at] = acts[x.upper.at] = true;
      if constexpr (std::is_same_v<X, NumberArray> && !is_table)
        std::fill(acts + x.at, acts + end_of_array(elements, x.at), true);
    };
    const_cast<Kind&>(element).fields([&](const char*, const auto& x, auto...) { mark(x); });  // fields() only reads here
    if constexpr (is_table) {
      double instant = 0.0;
      if constexpr (is_held) instant = element.instant();
      const auto& t = element.times;
      const auto begin = std::upper_bound(t.begin(), t.end(), from + instant),
                 end = std::lower_bound(t.begin(), t.end(), to - instant);
      const auto last = is_held || end == t.end() ? end : end + 1;
      const auto row = [&](auto at) {
        return acts + element.u.at + (at - t.begin()) * static_cast<std::ptrdiff_t>(element.motors.size());
      };
      const auto first = begin == t.begin() ? begin : begin - 1;
      if (first < last) std::fill(row(first), row(last), true);
    }
  });
}

/// Data that all steps of the runs in the lanes share.
struct Steps {
  const Tree& tree;
  const Plan& plan;
  const StepRange& range;
  std::int64_t i, end;
  Arena& arena;
  int m = 2 * tree.nv + plan.force_elements.nz, size = range.size;
  P *parameter, *x, *reached, *after, closes = P(range.closes), status = P(0.0);

  Steps(const Tree& t, const Plan& p, const StepRange& s, std::int64_t first, std::int64_t last, Arena& a)
      : tree(t), plan(p), range(s), i(first), end(last), arena(a) {
    parameter = take<P>(plan.force_elements.parameters), x = take<P>(size), reached = take<P>(size), after = take<P>(size);
    gather_runs(range.parameter, range.parameter_step, plan.force_elements.parameters, i, end, parameter);
  }
  template <class X> X* take(std::size_t n) const { return arena.take<X>(n); }
  bool moves() const { return range.clock.step != 0.0; }
  double time(std::int64_t k) const { return range.clock.start + static_cast<double>(range.clock.first + k) * range.clock.step; }
  void load(std::int64_t k) {
    gather_runs(range.x + k * size, range.run_step, size, i, end, x);
    if (moves()) gather_runs(range.x + (k + 1) * size, range.run_step, size, i, end, after);
  }

  /// Propagate changes of the state and of the parameters through step k from the loaded state. The stored guard determines if stages are projected
  /// onto the loops.
  void differentiate(std::int64_t k, Rates* change, const Rates* parameter_change, Onto onto, Rates* start) {
    const Arena::Scope scope(arena);
    Rates* begin = take<Rates>(m);
    std::copy(change, change + m, begin);
    for (bool again : {false, true}) {
      std::copy(x, x + size, reached);
      const P ended = step_with_change(step(k), closes, reached, change, parameter_change, onto, start);
      const auto off = missed();
      if (!again && any(off) && tree.loops.rows > 0) {
        closes = select(off, P(1.0) - closes, closes);
        std::copy(begin, begin + m, change);
        continue;
      }
      status = select(ended > status, ended, status);
      status = select(off, P(double(Status::no_convergence)), status);
      return;
    }
  }
  /// Propagate changes from the loaded state to the end of step k. Returns false if the step has no derivative matrices.
  bool forward_by_products(std::int64_t k, P* S, int count, const int* changing) {
    return has_products() && step_forward_by_products(step(k), x, moves() ? after : x, S, count, changing, status);
  }
  /// Pull a cotangent back from the end of step k to the loaded state. Returns false if the step has no vector-Jacobian products, or if derivatives along
  /// `directions` take less time.
  bool back_by_products(std::int64_t k, P* lambda, int directions, const int* acting, int count, P* by_parameter) {
    return has_products() &&
           step_back_by_products(step(k), x, moves() ? after : x, lambda, directions, acting, count, by_parameter, status);
  }
  void finish() const {
    for (int l = 0; l < abreast && i + l < end; ++l)
      if (lane(status, l) > 0.0) range.status[i + l] = static_cast<signed char>(lane(status, l));
  }

 private:
  bool has_products() const { return steps_have_products(tree, plan, moves()) && !any(closes > P(0.5)); }
  StepAtHand step(std::int64_t k) const { return {tree, arena, plan, parameter, time(k), range.clock.step}; }
  /// Return the lanes in which the repeated step does not end at the state that the run stored.
  Reproduced<P>::Mask missed() const {
    const Arena::Scope scope(arena);
    Reproduced<P> end(plan);
    if (!moves()) return end.missed();
    P* off = take<P>(tree.nv);
    difference(tree, static_cast<const P*>(after), static_cast<const P*>(reached), off);
    const int nq = tree.nq, nz = plan.force_elements.nz;
    for (int k = 0; k < tree.nv; ++k) end.see_displacement(k, off[k]), end.see_velocity(k, reached[nq + k], after[nq + k]);
    for (int k = nq + tree.nv, z = 0; z < nz; ++z) end.see_internal_state(z, reached[k + z], after[k + z]);
    return end.missed();
  }
};

void push_forward(const Tree& tree, const Plan& plan, const StepRange& range, const Changes& columns, std::int64_t begin,
                  std::int64_t end) {
  Arena& arena = thread_arena();
  for (std::int64_t i = begin; i < end; i += abreast) {
    const Arena::Scope scope(arena);
    Steps steps(tree, plan, range, i, end, arena);
    const int m = steps.m, count = columns.count;
    P* S = steps.take<P>(m * count);
    Rates *change = steps.take<Rates>(m), *numbers = steps.take<Rates>(plan.force_elements.parameters);
    gather_runs(columns.S, m * count, m * count, i, end, S);
    for (std::int64_t k = 0; k < range.clock.count; ++k) {
      steps.load(k);
      if (steps.forward_by_products(k, S, count, columns.parameter)) continue;
      for (int first = 0; first < count; first += together) {
        std::fill(numbers, numbers + plan.force_elements.parameters, Rates(0.0));
        for (int d = 0; d < together; ++d)
          for (int r = 0; r < m; ++r) along(change[r], d) = first + d < count ? S[r * count + first + d] : P(0.0);
        for (int d = 0; d < together && first + d < count; ++d)
          if (const int at = columns.parameter[first + d]; at >= 0) along(numbers[at], d) = P(1.0);
        steps.differentiate(k, change, numbers, range.onto, nullptr);
        for (int d = 0; d < together && first + d < count; ++d)
          for (int r = 0; r < m; ++r) S[r * count + first + d] = along(change[r], d);
      }
    }
    scatter_runs(S, m * count, i, end, columns.S, m * count);
    steps.finish();
  }
}

/// Products c of a cotangent with directions B on the loops, and the cotangent of the state computed from them.
class Basis {
 public:
  Basis(const Steps& s, const int (&freedoms)[2])
      : s_(s),
        nv_(s.tree.nv),
        displacements_(freedoms[0]),
        changes_(freedoms[1]),
        B_(s.take<P>(s.m * count())),
        c_(s.take<P>(count())) {}

  int count() const { return displacements_ + changes_ + s_.plan.force_elements.nz; }
  bool complete() const { return displacements_ == nv_ && changes_ == nv_; }
  void direct(int j, int d, Rates* change) const {
    for (int r = 0; r < s_.m; ++r) along(change[r], d) = P(0.0);
    if (complete()) return void(along(change[j], d) = P(1.0));
    if (j >= displacements_ + changes_) return void(along(change[2 * nv_ + j - displacements_ - changes_], d) = P(1.0));
    const int part = j < displacements_ ? 0 : nv_;
    if ((part ? changes_ : displacements_) == nv_) return void(along(change[part + (part ? j - displacements_ : j)], d) = P(1.0));
    for (int r = 0; r < nv_; ++r) along(change[part + r], d) = P(scattered_anew(r + nv_ * (j + 1)) * unit(r));
  }
  /// Store the projection of direction j onto the loops, and its product c with the cotangent.
  void take(int j, int d, const Rates* start, const P& c) {
    c_[j] = c;
    for (int r = 0; r < s_.m; ++r) B_[r * count() + j] = along(start[r], d);
  }
  /// Compute the cotangent of the state from the products c. Returns the status.
  P cotangent(P* lambda) {
    if (complete()) return std::copy(c_, c_ + count(), lambda), P(0.0);
    for (int r = 0; r < s_.m; ++r) lambda[r] = P(0.0);
    for (int k = 0; k < s_.plan.force_elements.nz; ++k) lambda[2 * nv_ + k] = c_[displacements_ + changes_ + k];
    P status = solve(displacements_, changes_, nv_, lambda);
    for (int j = 0; j < displacements_; ++j)  // subtract the velocities that follow displacements
      for (int r = 0; r < nv_; ++r) c_[j] -= B_[(nv_ + r) * count() + j] * lambda[nv_ + r];
    const P other = solve(0, displacements_, 0, lambda);
    return select(other > status, other, status);
  }

 private:
  double unit(int r) const { return Plan::unit_of(s_.plan.velocity_unit, r); }
  P b(int part, int r, int j) const { return B_[(part + r) * count() + j] * P(1.0 / unit(r)); }
  /// Solve for the components along n directions, beginning with direction `first`, by a Cholesky factor of B^T U B.
  P solve(int first, int n, int part, P* lambda) {
    const Arena::Scope scope(s_.arena);
    P *G = s_.take<P>(n * n), *y = s_.take<P>(n), status = P(0.0);
    for (int i = 0; i < n; ++i) {
      P size = P(0.0);
      for (int j = 0; j <= i; ++j) {
        P sum = P(0.0);
        for (int r = 0; r < nv_; ++r) sum += b(part, r, first + i) * b(part, r, first + j);
        if (j == i) size = sum;
        for (int k = 0; k < j; ++k) sum -= G[i * n + k] * G[j * n + k];
        G[i * n + j] = j < i ? P(sum / G[j * n + j]) : P(sqrt(select(sum > size * P(1e-12), sum, P(1.0))));
        if (j == i) status = select(sum > size * P(1e-12), status, P(double(Status::inconsistent_constraints)));
      }
      y[i] = c_[first + i];
      for (int k = 0; k < i; ++k) y[i] -= G[i * n + k] * y[k];
      y[i] /= G[i * n + i];
    }
    for (int i = n - 1; i >= 0; --i) {
      for (int k = i + 1; k < n; ++k) y[i] -= G[k * n + i] * y[k];
      y[i] /= G[i * n + i];
    }
    for (int r = 0; r < nv_; ++r)
      for (int j = 0; j < n; ++j) lambda[part + r] += b(part, r, first + j) * y[j] * P(1.0 / unit(r));
    return status;
  }

  const Steps& s_;
  int nv_, displacements_, changes_;
  P *B_, *c_;
};

void pull_back(const Tree& tree, const Plan& plan, const StepRange& range, const Cotangents& cotangents, std::int64_t begin,
               std::int64_t end) {
  Arena& arena = thread_arena();
  const int parameters = plan.force_elements.parameters;
  for (std::int64_t i = begin; i < end; i += abreast) {
    const Arena::Scope scope(arena);
    Steps steps(tree, plan, range, i, end, arena);
    const int m = steps.m, all[] = {tree.nv, tree.nv};
    Basis basis(steps, steps.moves() ? cotangents.freedoms : all);
    P *lambda = steps.take<P>(m), *by_parameter = steps.take<P>(parameters);
    Rates *change = steps.take<Rates>(m), *start = steps.take<Rates>(m), *numbers = steps.take<Rates>(parameters);
    int* acting = steps.take<int>(parameters);
    bool* acts = steps.take<bool>(parameters);
    gather_runs(cotangents.state, m, m, i, end, lambda);
    gather_runs(cotangents.parameter, parameters, parameters, i, end, by_parameter);
    for (std::int64_t k = range.clock.count - 1; k >= 0; --k) {
      steps.load(k);
      std::fill(acts, acts + parameters, false);
      if (steps.moves()) mark_acting(plan.force_elements, steps.time(k), steps.time(k + 1), acts);
      int count = basis.count();
      for (int p = 0; p < parameters; ++p)
        if (acts[p]) acting[count++ - basis.count()] = p;
      if (steps.back_by_products(k, lambda, basis.count(), acting, count - basis.count(), by_parameter)) continue;
      for (int first = 0; first < count; first += together) {
        std::fill(numbers, numbers + parameters, Rates(0.0)), std::fill(change, change + m, Rates(0.0));
        const int directions = std::min(together, count - first);
        for (int d = 0; d < directions; ++d)
          if (first + d < basis.count())
            basis.direct(first + d, d, change);
          else
            along(numbers[acting[first + d - basis.count()]], d) = P(1.0);
        steps.differentiate(k, change, numbers, range.onto, start);
        for (int d = 0; d < directions; ++d) {
          P c = P(0.0);
          for (int r = 0; r < m; ++r) c += lambda[r] * along(change[r], d);
          if (first + d < basis.count())
            basis.take(first + d, d, start, c);
          else
            by_parameter[acting[first + d - basis.count()]] += c;
        }
      }
      const P lost = basis.cotangent(lambda);
      steps.status = select(lost > steps.status, lost, steps.status);
    }
    scatter_runs(lambda, m, i, end, cotangents.state, m);
    scatter_runs(by_parameter, parameters, i, end, cotangents.parameter, parameters);
    steps.finish();
  }
}

}  // namespace

void add_step_kernels(KernelTable& table) {
  table.simulation.push_forward = push_forward, table.simulation.pull_back = pull_back;
}

}  // namespace sarrus
