// Entries, factorisation, solution and residual of the saddle equation on symbolic numbers. Where a graph shares functions, they are called: a step
// solves several equations of the same structure.
#include "symbolic.hpp"

#include "../loops/constrained_dynamics.hpp"

namespace sarrus {
namespace {

/// The same number as another type, for which the functions are the plain ones.
struct Plain : Symbolic {
  Plain() = default;
  Plain(double x) : Symbolic(x) {}
  Plain(const Symbolic& x) : Symbolic(x) {}
};
static_assert(sizeof(Plain) == sizeof(Symbolic));

Plain* plain(Symbolic* x) { return static_cast<Plain*>(x); }
const Plain* plain(const Symbolic* x) { return static_cast<const Plain*>(x); }

Saddle<Plain> plain(const Saddle<Symbolic>& s) {
  return {s.tree,     s.plan,        s.mass_first,      s.constraints,       s.rows,          plain(s.M),
          plain(s.J), plain(s.soft), plain(s.mobility), plain(s.row_weight), plain(s.inertia)};
}
Factor<Plain> plain(const Factor<Symbolic>& f) { return {plain(f.L), plain(f.D_inverse), plain(f.mu)}; }

Ids ids(const Symbolic* x, int n) {
  Ids all;
  for (int k = 0; x && k < n; ++k) all.push_back(x[k].id);
  return all;
}
/// Copy the numbers with these ids to the arena; null if there are none.
Symbolic* numbers(Arena& arena, const Ids& all) {
  Symbolic* x = all.empty() ? nullptr : arena.take<Symbolic>(all.size());
  for (std::size_t k = 0; k < all.size(); ++k) x[k] = Symbolic::of(all[k]);
  return x;
}
void copy(const Ids& all, std::size_t begin, int n, Symbolic* to) {
  for (int k = 0; k < n; ++k) to[k] = Symbolic::of(all[begin + static_cast<std::size_t>(k)]);
}
/// Return a name for the equations of one elimination and one kind of matrix.
std::string named(const char* what, const Saddle<Symbolic>& s) {
  return std::string(what) + (s.mass_first ? "" : "_plain") + (s.soft ? "_soft" : "");
}
int mass_entries(const Saddle<Symbolic>& s) { return s.mass_first ? s.mass_first[s.tree.nv] : s.tree.nv; }
int row_entries(const Saddle<Symbolic>& s) {
  int n = 0;
  for (int i = 0; i < s.constraints; ++i) n += s.tree.loops.constraint[i].rows * s.tree.loops.constraint[i].columns;
  return n;
}

}  // namespace

/// Return the tolerance of rounding errors, as for Symbolic.
template <> inline Plain tolerance<Plain>(double x, double in_single) { return tolerance<Symbolic>(x, in_single); }

template <> Factor<Symbolic> factorise(const Saddle<Symbolic>& s, Arena& arena, const Symbolic* epsilon, const Symbolic* mu) {
  Graph& graph = Symbolic::graph();
  const auto direct = [&](const Saddle<Symbolic>& of, const Symbolic* e, const Symbolic* m) {
    const Factor<Plain> f = factorise(plain(of), arena, plain(e), plain(m));
    return Factor<Symbolic>{f.L, f.D_inverse, f.mu};
  };
  if (!graph.shares) return direct(s, epsilon, mu);
  const int slots = s.plan.slots, unknowns = s.plan.unknowns, used_rows = s.plan.fronts ? 0 : s.rows, rows = s.rows;
  const Ids all =
      graph.call(named("factor", s),
                 {ids(s.M, mass_entries(s)), ids(s.J, row_entries(s)), ids(s.soft, rows), ids(epsilon, s.tree.nv), ids(mu, rows)},
                 [&](const std::vector<Ids>& in) {
                   const Arena::Scope scope(arena);
                   Saddle<Symbolic> inner = s;
                   inner.M = numbers(arena, in[0]), inner.J = numbers(arena, in[1]), inner.soft = numbers(arena, in[2]);
                   const Factor<Symbolic> f = direct(inner, numbers(arena, in[3]), numbers(arena, in[4]));
                   Ids results = ids(f.L, slots);
                   for (const auto& [x, n] : {std::pair<const Symbolic*, int>(f.D_inverse, unknowns), {f.mu, used_rows}})
                     for (int k = 0; k < n; ++k) results.push_back(x[k].id);
                   return results;
                 });
  Symbolic *L = arena.take<Symbolic>(slots), *D_inverse = arena.take<Symbolic>(unknowns), *used = arena.take<Symbolic>(used_rows);
  copy(all, 0, slots, L), copy(all, static_cast<std::size_t>(slots), unknowns, D_inverse);
  copy(all, static_cast<std::size_t>(slots + unknowns), used_rows, used);
  return {L, D_inverse, used_rows ? used : nullptr};
}

template <> void solve(const Elimination& e, const Factor<Symbolic>& f, Arena& arena, Symbolic* x) {
  Graph& graph = Symbolic::graph();
  if (!graph.shares) return solve(e, plain(f), arena, plain(x));
  const Ids all = graph.call("solution", {ids(f.L, e.slots), ids(f.D_inverse, e.unknowns), ids(x, e.unknowns)},
                             [&](const std::vector<Ids>& in) {
                               const Arena::Scope scope(arena);
                               Symbolic* to = numbers(arena, in[2]);
                               const Factor<Symbolic> inner = {numbers(arena, in[0]), numbers(arena, in[1]), nullptr};
                               solve(e, plain(inner), arena, plain(to));
                               return ids(to, e.unknowns);
                             });
  copy(all, 0, e.unknowns, x);
}

template <> Symbolic residual(const Saddle<Symbolic>& s, const Symbolic* b, const Symbolic* x, Symbolic* r) {
  return residual(plain(s), plain(b), plain(x), plain(r));
}

template <> Symbolic* sparse_mass_matrix(const Tree& tree, Arena& arena, const Symbolic* q, Poses<Symbolic> X,
                                         const Motion<Symbolic>* columns) {
  const int *first = tree.loops.mass_first, entries = first[tree.nv];
  Symbolic* M = arena.take<Symbolic>(entries);
  const auto compute = [&](Poses<Symbolic> poses, const Motion<Symbolic>* stored) {
    composite_inertias(tree, arena, poses, stored,
                       [&](int r, int c, const Symbolic& m) { M[first[r] + tree.column_depth[r] - tree.column_depth[c]] = m; });
  };
  if (!Symbolic::graph().shares || !q) return compute(X, columns), M;
  const Ids all = Symbolic::graph().call("inertias", {ids(q, tree.nq)}, [&](const std::vector<Ids>& in) {
    const Arena::Scope scope(arena);
    Transform<Symbolic>* poses = arena.take<Transform<Symbolic>>(tree.links);
    Motion<Symbolic>* stored = arena.take<Motion<Symbolic>>(tree.nv);
    joint_poses(tree, arena, numbers(arena, in[0]), poses, stored);
    compute({poses}, stored);
    return ids(M, entries);
  });
  copy(all, 0, entries, M);
  return M;
}

template <> void constraint_rows(const Tree& tree, Arena& arena, const LoopState<Symbolic>& s,
                                 const ConstraintRows<Symbolic>& out, int begin, int end) {
  const Loops& loops = tree.loops;
  const auto compute = [&](const LoopState<Symbolic>& state, const ConstraintRows<Symbolic>& rows) {
    for (int i = begin; i < end; ++i) {
      const Constraint& c = loops.constraint[i];
      c.child < 0 ? rows_between_coordinates(tree, state, c, rows) : rows_between_bodies(tree, arena, state, c, rows);
    }
  };
  // states of substructures, which have other columns, are not computed from q alone
  if (!Symbolic::graph().shares || out.off || begin > 0 || !(s.link || s.in_parent)) return compute(s, out);
  if (!out.J || !out.scale) return compute(s, out);
  const int entries = loops.entries, rows = loops.rows;
  const Ids time = s.time ? ids(s.time, 1) : Ids{};
  const Ids all =
      Symbolic::graph().call("rows", {ids(s.q, tree.nq), time, ids(out.mobility, tree.nv)}, [&](const std::vector<Ids>& in) {
        const Arena::Scope scope(arena);
        const Symbolic *q = numbers(arena, in[0]), *at = numbers(arena, in[1]);
        ConstraintRows<Symbolic> inner;
        inner.J = arena.take<Symbolic>(entries), inner.scale = arena.take<Symbolic>(rows), inner.mobility = numbers(arena, in[2]);
        compute(place(tree, arena, q, at, s.pfaffian_values), inner);
        Ids results = ids(inner.J, entries);
        for (int r = 0; r < rows; ++r) results.push_back(inner.scale[r].id);
        return results;
      });
  copy(all, 0, entries, out.J), copy(all, static_cast<std::size_t>(entries), rows, out.scale);
  ConstraintRows<Symbolic> others = out;
  others.J = others.scale = nullptr, others.mobility = nullptr;
  compute(s, others);
}

}  // namespace sarrus
