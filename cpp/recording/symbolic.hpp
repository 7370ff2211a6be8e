// Symbolic: a symbolic number. If an algorithm that is a template on its scalar runs on Symbolic numbers, it stores the expressions of its result in a graph. A
// comparison returns a symbolic condition: select() stores both operands, and any(), which controls loops, evaluates the condition at the sample
// states of the graph.
#pragma once

#include <vector>

#include "../loops/tolerances.hpp"
#include "../spatial/numbers.hpp"
#include "graph.hpp"

namespace sarrus {

struct Condition {
  int id;
};

struct Symbolic {
  int id;

  Symbolic() = default;
  Symbolic(double x) : id(graph().constant(x)) {}
  static Symbolic of(int id) {
    Symbolic x;
    x.id = id;
    return x;
  }
  static Graph& graph() { return *Graph::current(); }

  Symbolic& operator+=(Symbolic b) { return *this = *this + b; }
  Symbolic& operator-=(Symbolic b) { return *this = *this - b; }
  Symbolic& operator*=(Symbolic b) { return *this = *this * b; }
  Symbolic& operator/=(Symbolic b) { return *this = *this / b; }
  Symbolic operator-() const { return of(graph().negative(id)); }
  friend Symbolic operator+(Symbolic a, Symbolic b) { return of(graph().sum(a.id, b.id)); }
  friend Symbolic operator-(Symbolic a, Symbolic b) { return of(graph().difference(a.id, b.id)); }
  friend Symbolic operator*(Symbolic a, Symbolic b) { return of(graph().product(a.id, b.id)); }
  friend Symbolic operator/(Symbolic a, Symbolic b) { return of(graph().quotient(a.id, b.id)); }
  friend Condition operator<(Symbolic a, Symbolic b) { return {graph().less(a.id, b.id)}; }
  friend Condition operator>(Symbolic a, Symbolic b) { return b < a; }
};

inline Symbolic select(Condition m, Symbolic a, Symbolic b) { return Symbolic::of(Symbolic::graph().choice(m.id, a.id, b.id)); }
/// As in ../elements/held.hpp.
template <class Body> bool when(Condition holds, Symbolic* x, int n, Body&& body) {
  const std::vector<Symbolic> before(x, x + n);
  body();
  for (int k = 0; k < n; ++k) x[k] = select(holds, x[k], before[static_cast<std::size_t>(k)]);
  return false;
}
inline Symbolic first_lane(Symbolic x) { return x; }
inline bool any(Condition m) { return Symbolic::graph().any(m.id); }
inline Condition both(Condition a, Condition b) { return {Symbolic::graph().both(a.id, b.id)}; }
inline Symbolic sqrt(Symbolic x) { return Symbolic::of(Symbolic::graph().root(x.id)); }
inline Symbolic abs(Symbolic x) { return Symbolic::of(Symbolic::graph().magnitude(x.id)); }
inline Symbolic nearest(Symbolic x) { return Symbolic::of(Symbolic::graph().nearest(x.id)); }
inline Symbolic atan2(Symbolic y, Symbolic x) { return Symbolic::of(Symbolic::graph().arctangent(y.id, x.id)); }
inline Symbolic exponential(Symbolic x) { return Symbolic::of(Symbolic::graph().exponential(x.id)); }
inline Symbolic logarithm(Symbolic x) { return Symbolic::of(Symbolic::graph().logarithm(x.id)); }
inline Symbolic power(Symbolic x, Symbolic n) { return Symbolic::of(Symbolic::graph().power(x.id, n.id)); }
inline void sincos(Symbolic x, Symbolic& s, Symbolic& c) {
  s = Symbolic::of(Symbolic::graph().sine(x.id)), c = Symbolic::of(Symbolic::graph().cosine(x.id));
}

/// Numbers of a mechanism: inputs if they are parameters of the recording, constants otherwise.
template <> struct NumbersOf<Symbolic, false> {
  Symbolic operator()(const double& x) const { return Symbolic::of(Symbolic::graph().number_at(&x)); }
  template <class X> auto operator()(const X& x) const {
    auto all = cast<Symbolic>(x);
    constexpr std::size_t n = sizeof(x) / sizeof(double);
    static_assert(sizeof(all) == n * sizeof(Symbolic), "no padding");
    const double* from = reinterpret_cast<const double*>(&x);
    for (std::size_t k = 0; Symbolic::graph().places && k < n; ++k) reinterpret_cast<Symbolic*>(&all)[k] = (*this)(from[k]);
    return all;
  }
};

/// Return the tolerance of rounding errors, which is different in single precision.
template <> inline Symbolic tolerance<Symbolic>(double x, double in_single) {
  return Symbolic(Symbolic::graph().single ? in_single : x);
}

/// Assume that the next correction is below 1e-5 of the solution, because the ratio of successive corrections is nearly constant.
template <> inline void expect_settled(const LastCorrection<Symbolic>& last) {
  if (!Symbolic::graph().single) return;
  const Symbolic most = sqrt(last.size * last.before) * Symbolic(1e-5) + last.unheld * Symbolic(1e-14);
  Symbolic::graph().assume((last.moved < most).id);
}

struct Law;
void derivatives(const Law& law, const Symbolic& x, int orders, Symbolic* out, Symbolic* bound);
template <int N> void derivatives(const Law& law, const Symbolic& x, Symbolic (&out)[N], Symbolic (&bound)[2]) {
  derivatives(law, x, N, out, bound);
}
void evaluate(const Law& law, const Symbolic* time, Symbolic (&out)[3]);
void evaluate(const Law& law, const Symbolic* parameter, const Symbolic* time, Symbolic (&out)[3]);

}  // namespace sarrus

// after the declarations above, which its functions use
#include "../dynamics/state.hpp"
#include "../loops/saddle_matrix.hpp"

namespace sarrus {

// ---- functions that recordings may call: see saddle.cpp ------------------------------------------------------------------------------------

template <class T> Factor<T> factorise(const Saddle<T>&, Arena&, const T* epsilon, const T* mu);
template <class F, class T> void solve(const Elimination&, const Factor<F>&, Arena&, T* x);
template <class F, class T> T residual(const Saddle<F>&, const T* b, const T* x, T* r);
template <class T> struct LoopState;
template <class T> struct ConstraintRows;
template <class T> void constraint_rows(const Tree&, Arena&, const LoopState<T>&, const ConstraintRows<T>&, int begin, int end);
template <class T> T* sparse_mass_matrix(const Tree&, Arena&, const T* q, Poses<T>, const Motion<T>* columns);
template <> Factor<Symbolic> factorise(const Saddle<Symbolic>&, Arena&, const Symbolic* epsilon, const Symbolic* mu);
template <> void solve(const Elimination&, const Factor<Symbolic>&, Arena&, Symbolic* x);
template <> Symbolic residual(const Saddle<Symbolic>&, const Symbolic* b, const Symbolic* x, Symbolic* r);
template <>
void constraint_rows(const Tree&, Arena&, const LoopState<Symbolic>&, const ConstraintRows<Symbolic>&, int begin, int end);
template <> Symbolic* sparse_mass_matrix(const Tree&, Arena&, const Symbolic* q, Poses<Symbolic>,
                                         const Motion<Symbolic>* columns);

}  // namespace sarrus

namespace Eigen {
template <> struct NumTraits<sarrus::Symbolic> : ScalarTraits<sarrus::Symbolic> {};
}  // namespace Eigen
