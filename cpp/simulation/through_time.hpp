// Derivatives of runs with fixed steps and stored samples: forward mode, changes of the samples due to changes of the initial state and of
// parameters; reverse mode, cotangents of the initial state and of parameters from cotangents of the samples.
//
// Samples are the checkpoints. Reverse mode recomputes the steps between two samples exactly, from the last pair of samples to the first. It needs
// memory for the samples and, for some runs at a time, for the recomputed states. Forward mode needs no additional memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "driver.hpp"
#include "independent_columns.hpp"

namespace sarrus {

/// Samples (runs, samples + 1, size), with the parameters of each run, or shared parameters (parameter_step 0).
struct Samples {
  const double* kept;
  Count runs;
  Schedule schedule;
  const double* parameter;
  Count parameter_step;
  signed char* status;  // (runs)
};

class ThroughTime {
 public:
  ThroughTime(const Simulation& simulation, const Samples& samples) : s_(simulation), samples_(samples), plan_(simulation.plan) {
    plan_.records = plan_.measures = false, plan_.limits = 0;
    if (projects() && samples_.runs > 0)  // computed for one run only, because consistency of rows is a property of the mechanism
      closes_ = s_.kernels.only_on_loops(s_.tree, plan_, samples_.schedule.clock.start, sample(0, 0));
    count_freedoms();
  }
  /// Return the length of a change of a state: displacement, changes of v and of z.
  int tangent() const { return 2 * s_.tree.nv + plan_.force_elements.nz; }

  /// Propagate the derivatives S (runs, samples + 1, tangent, columns) from sample to sample. On entry, the first sample of each run contains the
  /// derivatives of the initial state.
  void forward(int columns, const int* parameter, double* S, Count begin, Count end) const {
    const Count wide = static_cast<Count>(tangent()) * columns, all = samples_.schedule.samples() + 1;
    std::vector<double> now((end - begin) * wide);
    for (Count i = begin; i < end; ++i) std::copy_n(S + i * all * wide, wide, now.data() + (i - begin) * wide);
    const Propagated changes(*this, columns, parameter, now, begin, end);
    const auto keep = [&](Count k) {
      for (Count i = begin; i < end; ++i) changes.expand(now.data(), i - begin, S + (i * all + k) * wide);
    };
    if (starts_on_loops()) s_.kernels.push_forward(s_.tree, plan_, start(begin), changes.columns(now), 0, end - begin);
    keep(0);
    for (Count k = 0; k + 1 < all; ++k) {
      each_range(k, begin, end, false, [&](StepRange range) {
        range.onto = Onto::none;
        s_.kernels.push_forward(s_.tree, plan_, range, changes.columns(now), 0, end - begin);
      });
      keep(k + 1);
    }
  }

  /// Convert cotangents (runs, samples + 1, tangent) of samples to those of initial states (runs, tangent) and parameters (runs, parameters).
  void back(const double* cotangent, double* state, double* parameter, Count begin, Count end) const {
    const Count m = tangent(), all = samples_.schedule.samples() + 1, numbers = plan_.force_elements.parameters;
    Cotangents to = {state + begin * m, parameter + begin * numbers, {freedoms_[0], freedoms_[1]}};
    const auto add = [&](Count k) {
      for (Count i = begin; i < end; ++i)
        for (Count r = 0; r < m; ++r) state[i * m + r] += cotangent[(i * all + k) * m + r];
    };
    for (Count k = all - 1; k > 0; --k) {
      add(k);
      each_range(k - 1, begin, end, true,
                 [&](const StepRange& range) { s_.kernels.pull_back(s_.tree, plan_, range, to, 0, end - begin); });
    }
    add(0);
    if (starts_on_loops()) s_.kernels.pull_back(s_.tree, plan_, start(begin), to, 0, end - begin);
  }

 private:
  /// Columns of changes that are propagated: all of them; or, if the derivatives by all changes of states on loops are wanted, those of independent
  /// changes, of internal states and of parameters.
  class Propagated {
   public:
    /// S: changes of the runs from `begin` to `end`; replaced by the columns to propagate.
    Propagated(const ThroughTime& time, int columns, const int* parameter, std::vector<double>& S, Count begin, Count end)
        : nv_(time.s_.tree.nv), m_(time.tangent()), all_(columns), parameter_(parameter, parameter + columns) {
      const int freedom = time.freedom_;
      if (freedom >= nv_ || columns < m_ || !is_identity(S)) return;
      const Count runs = end - begin;
      std::vector<double> P(runs * m_ * nv_), block(static_cast<std::size_t>(nv_) * nv_), unit(nv_);
      const std::vector<int> none(nv_, -1);
      for (Count i = 0; i < runs; ++i)
        for (int k = 0; k < nv_; ++k) P[(i * m_ + nv_ + k) * nv_ + k] = 1.0;
      time.s_.kernels.push_forward(time.s_.tree, time.plan_, time.start(begin), {P.data(), nv_, none.data()}, 0, runs);
      for (int k = 0; k < nv_; ++k) unit[k] = Plan::unit_of(time.plan_.velocity_unit, k);
      for (Count i = 0; i < runs; ++i) {
        of_run_.emplace_back(nv_, P.data() + (i * m_ + nv_) * nv_, unit.data(), freedom);
        if (of_run_.back().are_all) continue;
        of_run_.clear();
        return;
      }
      const int fewer = columns - 2 * (nv_ - freedom);
      parameter_.erase(parameter_.begin(), parameter_.begin() + 2 * (nv_ - freedom));
      std::fill(S.begin(), S.end(), 0.0);
      for (Count i = 0; i < runs; ++i) {
        double* of_run = S.data() + i * m_ * fewer;
        for (int c = 0; c < freedom; ++c)
          for (const int part : {0, 1}) of_run[(part * nv_ + of_run_[i].chosen[c]) * fewer + part * freedom + c] = 1.0;
        for (int z = 0; z < m_ - 2 * nv_; ++z) of_run[(2 * nv_ + z) * fewer + 2 * freedom + z] = 1.0;
      }
      freedom_ = freedom;
    }
    Changes columns(std::vector<double>& S) const { return {S.data(), static_cast<int>(parameter_.size()), parameter_.data()}; }
    /// Compute all changes (m x columns) of one run.
    void expand(const double* S, Count run, double* to) const {
      const int wide = static_cast<int>(parameter_.size());
      for (const double* row = S + run * m_ * wide; row < S + (run + 1) * m_ * wide; row += wide, to += all_) {
        if (of_run_.empty()) {
          std::copy_n(row, all_, to);
          continue;
        }
        of_run_[run].expand(row, to), of_run_[run].expand(row + freedom_, to + nv_);
        std::copy(row + 2 * freedom_, row + wide, to + 2 * nv_);
      }
    }

   private:
    /// Return true if the changes of all runs are those of each velocity, internal state and parameter alone.
    bool is_identity(const std::vector<double>& S) const {
      for (int c = 0; c < all_; ++c)
        if ((parameter_[c] < 0) != (c < m_)) return false;
      for (std::size_t k = 0; k < S.size(); ++k)
        if (S[k] != (static_cast<int>(k % all_) == static_cast<int>(k / all_ % m_) ? 1.0 : 0.0)) return false;
      return true;
    }

    int nv_, m_, all_, freedom_ = 0;
    std::vector<int> parameter_;
    std::vector<IndependentColumns> of_run_;  // empty: all changes are propagated
  };

  bool projects() const { return s_.tree.loops.rows > 0 && plan_.stabilisation == Stabilisation::projection; }
  bool starts_on_loops() const { return s_.tree.loops.rows > 0 && plan_.stabilisation != Stabilisation::none; }
  const double* sample(Count run, Count k) const {
    return samples_.kept + (run * (samples_.schedule.samples() + 1) + k) * s_.size();
  }
  StepRange range(const Clock& clock, Count run, const double* x, Count run_step) const {
    return {clock,
            x,
            s_.size(),
            run_step,
            samples_.parameter + run * samples_.parameter_step,
            samples_.parameter_step,
            onto_,
            closes_,
            samples_.status + run};
  }
  StepRange start(Count run) const {
    StepRange at =
        range({samples_.schedule.clock.start, 0.0, 0, 1}, run, sample(run, 0), (samples_.schedule.samples() + 1) * s_.size());
    at.onto = Onto::loops;
    return at;
  }

  /// Count the degrees of freedom that the loops allow: the trace of the projection, applied to all directions at the first initial state. Symplectic
  /// steps leave velocities slightly off the loops: see advance.hpp.
  void count_freedoms() {
    const int nv = s_.tree.nv, m = tangent();
    freedoms_[0] = freedoms_[1] = nv, freedom_ = nv;
    onto_ = Onto::none;
    if (!projects() || samples_.runs == 0) return;
    onto_ = Onto::loops;
    std::vector<double> S(m * m);
    std::vector<int> none(m, -1);
    for (int k = 0; k < m; ++k) S[k * m + k] = 1.0;
    s_.kernels.push_forward(s_.tree, plan_, start(0), {S.data(), m, none.data()}, 0, 1);
    for (int part : {0, 1}) {
      double trace = 0.0;
      for (int k = part * nv; k < (part + 1) * nv; ++k) trace += S[k * m + k];
      freedoms_[part] = static_cast<int>(std::lround(trace));
      if (std::abs(trace - freedoms_[part]) > 1e-6) samples_.status[0] = inconsistent_constraints;
    }
    if (holonomic_throughout() && closes_ < 0.5) freedom_ = freedoms_[0];
    if (plan_.method == Method::semi_implicit && holonomic_throughout() && closes_ < 0.5)
      onto_ = Onto::positions, freedoms_[1] = nv;
  }
  bool holonomic_throughout() const {
    bool all = true;
    for (int i = 0; i < s_.tree.loops.constraints; ++i) all &= holonomic(s_.tree.loops.constraint[i]);
    return all;
  }

  /// Visit the steps from sample k to sample k + 1: full steps, and perhaps a shorter one.
  template <class Visit> void each_range(Count k, Count begin, Count end, bool backward, Visit&& visit) const {
    const Schedule& schedule = samples_.schedule;
    const auto& [time, step, zero, full_steps] = schedule.clock;
    const Count first = k * schedule.every, last = std::min(schedule.steps(), first + schedule.every), n = s_.size();
    const Count count = std::min(last, full_steps) - std::min(first, full_steps);
    const Clock plain = {time, step, first, count},
                rest = {time + static_cast<double>(full_steps) * step, schedule.rest, 0, last - first - count};
    if (last - first == 1) return visit(range(count ? plain : rest, begin, sample(begin, k), (schedule.samples() + 1) * n));
    const std::vector<double> between = states_between(k, begin, end, plain, rest);
    const Count wide = (last - first + 1) * n;
    const auto part = [&](const Clock& clock, Count from) {
      if (clock.count > 0) visit(range(clock, begin, between.data() + from * n, wide));
    };
    if (backward)
      part(rest, count), part(plain, 0);
    else
      part(plain, 0), part(rest, count);
  }

  std::vector<double> states_between(Count k, Count begin, Count end, const Clock& plain, const Clock& rest) const {
    const Count n = s_.size(), wide = n + carried_size(plan_), steps = plain.count + rest.count, runs = end - begin;
    std::vector<double> rows(runs * wide), all(runs * (steps + 1) * n);
    std::vector<signed char> status(static_cast<std::size_t>(runs));
    for (Count i = 0; i < runs; ++i) {
      std::copy_n(sample(begin + i, k), n, rows.data() + i * wide), begin_carried(plan_, rows.data() + i * wide + n);
      Guard<double>(rows.data() + i * wide + n).closes = closes_;
      std::copy_n(rows.data() + i * wide, n, all.data() + i * (steps + 1) * n);
    }
    const Sweep sweep = {rows.data(), static_cast<int>(wide), samples_.parameter + begin * samples_.parameter_step,
                         samples_.parameter_step, status.data()};
    for (Count j = 0; j + 1 < steps; ++j) {
      Clock clock = j < plain.count ? plain : rest;
      clock.first += j < plain.count ? j : 0, clock.count = 1;
      s_.kernels.advance_many(s_.tree, plan_, clock, sweep, 0, runs);
      for (Count i = 0; i < runs; ++i) {
        if (status[i] != 0 || !is_finite(rows.data() + i * wide, n)) samples_.status[begin + i] = no_convergence;
        if (samples_.status[begin + i] != 0) std::copy_n(sample(begin + i, k), n, rows.data() + i * wide);
        std::copy_n(rows.data() + i * wide, n, all.data() + (i * (steps + 1) + j + 1) * n);
      }
    }
    for (Count i = 0; i < runs; ++i) std::copy_n(sample(begin + i, k + 1), n, all.data() + (i * (steps + 1) + steps) * n);
    return all;
  }

  const Simulation& s_;
  const Samples& samples_;
  Plan plan_;
  double closes_ = 0.0;  // 1 if stages are projected onto the loops
  int freedoms_[2];
  int freedom_;  // number of independent velocities, if displacements have the same directions; else nv
  Onto onto_;
};

}  // namespace sarrus
