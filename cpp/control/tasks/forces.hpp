// Tasks for forces of constraints and contacts:
//
//   multipliers     of constraint rows: lambda = target + integral z, z-dot = target - lambda (Li and Wu 4.6)
//   contact force   components of a contact's force, which belong to the unknowns x
#pragma once

#include "task.hpp"

namespace sarrus {

struct MultiplierTask : ForceTask {
  static constexpr const char* name = "MultiplierTask";
  std::vector<int> row;  // indices of constraint rows
  RowNumbers integral = {0, 0, true};
  int state = -1;

  int rows() const { return static_cast<int>(row.size()); }
  template <class F> void fields(F field) {
    ForceTask::fields(field), field("rows", row), field("integral", integral), field("state", state);
  }
  template <class T> T affine(const TaskUnknowns<T>& u, int i, T* along) const {
    for (int k = 0; k < u.n; ++k) along[k] = u.Lambda[k * u.rows + row[i]];
    return u.lambda[row[i]];
  }
  template <class T> T value(const T*, const T* lambda, int i) const { return lambda[row[i]]; }
  template <class T> T size(const T* row_weight, int i) const { return row_weight[row[i]]; }
  template <class T> T integral_action(const TaskState<T>& s, int i, const T* z) const {
    return state >= 0 ? integral(s, i) * z[state + i] : T(0.0);
  }
};

struct ContactForceTask : ForceTask {
  static constexpr const char* name = "ContactForceTask";
  std::vector<int> unknown;  // indices of its unknowns

  int rows() const { return static_cast<int>(unknown.size()); }
  template <class F> void fields(F field) { ForceTask::fields(field), field("unknowns", unknown); }
  template <class T> T affine(const TaskUnknowns<T>& u, int i, T* along) const {
    for (int k = 0; k < u.n; ++k) along[k] = T(k == unknown[i] ? 1.0 : 0.0);
    return T(0.0);
  }
  template <class T> T value(const T* x, const T*, int i) const { return x[unknown[i]]; }
  template <class T> T size(const T*, int) const { return T(0.0); }
};

}  // namespace sarrus
