#include "symbolic.hpp"

#include "../control/task_control.hpp"
#include "../kernels/loop_operations.hpp"
#include "../kernels/operation_sizes.hpp"
#include "../kernels/tree_operations.hpp"
#include "operations.hpp"

namespace sarrus {

/// Evaluate a function and its derivatives; choices (select) find the coefficients of the current piece.
void derivatives(const Law& law, const Symbolic& x, int orders, Symbolic* out, Symbolic* bound) {
  const int pieces = static_cast<int>(law.start.size()), terms = static_cast<int>(law.coefficient.size()) / pieces;
  const double period = law.period;
  Symbolic t = x;
  if (period > 0.0) {  // the nearest integer is even in the middle between two: then another period is added or removed
    t = x - Symbolic(period) * nearest((x - Symbolic(law.start[0])) * Symbolic(1.0 / period) - Symbolic(0.5));
    t = select(t < Symbolic(law.start[0] + period), t, t - Symbolic(period));
    t = select(t < Symbolic(law.start[0]), t + Symbolic(period), t);
  }
  Symbolic start = law.start[0];
  std::vector<Symbolic> c(law.coefficient.begin(), law.coefficient.begin() + terms);
  for (int piece = 1; piece < pieces; ++piece) {
    const Condition before = t < Symbolic(law.start[piece]);
    start = select(before, start, law.start[piece]);
    for (int k = 0; k < terms; ++k) c[k] = select(before, c[k], law.coefficient[piece * terms + k]);
  }
  const Symbolic s = t - start;
  std::fill_n(out, orders, Symbolic(0.0)), bound[0] = bound[1] = 0.0;
  for (int k = terms - 1; k >= 0; --k) {
    for (int n = orders - 1; n > 0; --n) out[n] = out[n] * s + Symbolic(n) * out[n - 1];
    out[0] = out[0] * s + c[k];
    bound[0] = bound[0] * abs(s) + abs(c[k]);
    if (k > 0) bound[1] = bound[1] * abs(s) + Symbolic(k) * abs(c[k]);
  }
  for (std::size_t h = 0; h < law.harmonic.size(); h += 3) {
    const double rate = law.harmonic[h + 1];
    Symbolic sine, cosine;
    sincos(x * Symbolic(rate) + Symbolic(law.harmonic[h + 2]), sine, cosine);
    double size = law.harmonic[h];
    bound[0] += Symbolic(std::fabs(size)), bound[1] += Symbolic(std::fabs(size * rate));
    for (int n = 0; n < orders; ++n, size *= rate) out[n] += Symbolic(n & 2 ? -size : size) * (n & 1 ? cosine : sine);
  }
}
/// Evaluate a function of time.
void evaluate(const Law& law, const Symbolic* time, Symbolic (&out)[3]) {
  Symbolic bound[2];
  derivatives(law, time ? *time : Symbolic(0.0), 3, out, bound);
}
/// Evaluate a time function whose value, rate and acceleration are inputs of the call.
void evaluate(const Law& law, const Symbolic* parameter, const Symbolic* time, Symbolic (&out)[3]) {
  if (!law.start.empty()) return evaluate(law, time, out);
  std::copy_n(parameter + law.parameter_index, 3, out);
}

template <> bool exceeds(const Symbolic& x, const Symbolic& limit, double unnoticed) {
  Graph& g = Symbolic::graph();
  if (g.holds_somewhere((limit < x).id)) return true;
  g.assume(g.opposite((limit * Symbolic(unnoticed) < x).id));
  return false;
}

namespace {

Symbolic run(Operation operation, const Call<Symbolic>& call) {
  switch (operation) {
#define SARRUS_RUN(name) \
  case Operation::name: return Kernel<Operation::name>::run(call);
    SARRUS_RECORDED(SARRUS_RUN)
#undef SARRUS_RUN
    default: return Symbolic(no_answer);
  }
}

int size_of_result(const RecordedOperation& operation, const Tree& tree) {
  int size = 1;
  for (const char* axis = operation.axes; *axis; ++axis) size *= size_of_axis(*axis, tree);
  return size;
}

void round_off(double& x, double unit) {
  for (const double exact : {0.0, 1.0, -1.0, 0.5, -0.5})
    if (std::fabs(x - exact * unit) < 1e-15 * unit) x = exact * unit;
}
void round_off(Transform<double>& X, double length) {
  for (int i = 0; i < 9; ++i) round_off(X.R.data()[i], 1.0);
  for (int i = 0; i < 3; ++i)
    if (std::fabs(X.p(i)) < 1e-16 * length) X.p(i) = 0.0;
}

}  // namespace

const std::vector<RecordedOperation>& recorded_operations() {
  static const std::vector<RecordedOperation> all = [] {
    using namespace fact;
    std::vector<RecordedOperation> operations;
    const auto add = [&](const RecordedOperation& each) {
      switch (each.operation) {
#define SARRUS_CASE(name) case Operation::name:
        SARRUS_RECORDED(SARRUS_CASE) operations.push_back(each);
#undef SARRUS_CASE
        default: break;
      }
    };
#define SARRUS_INFO(name, inputs, axes, facts) add({Operation::name, #name, inputs, axes, facts});
    SARRUS_OPERATIONS(SARRUS_INFO)
#undef SARRUS_INFO
    return operations;
  }();
  return all;
}

RoundedTree::RoundedTree(const Tree& tree, bool in_world) : tree_(tree), links_(tree.link, tree.link + tree.links) {
  const Loops& loops = tree.loops;
  constraints_.assign(loops.constraint, loops.constraint + loops.constraints + loops.motor_constraints);
  for (Link& b : links_) {
    round_off(b.X_tree, tree.length);
    for (int i = 0; i < 3; ++i)
      if (std::fabs(b.inertia.h(i)) < 1e-16 * tree.mass * tree.length) b.inertia.h(i) = 0.0;
    for (Sym3<double>* S : {&b.inertia.I, &b.euler})
      for (double* x : {&S->xx, &S->xy, &S->xz, &S->yy, &S->yz, &S->zz})
        if (std::fabs(*x) < 1e-17 * tree.mass * tree.length * tree.length) *x = 0.0;
  }
  for (Constraint& c : constraints_) round_off(c.X_parent, tree.length), round_off(c.X_child, tree.length);
  for (int i = 0; in_world && i < loops.constraints; ++i) {
    const LoopJoint* joint = std::get_if<LoopJoint>(&constraints_[i].kind);
    constraints_[i].in_world = joint && is_ball(constraints_[i], *joint);
  }
  tree_.link = links_.data();
  tree_.loops.constraint = constraints_.data();
}

void add_copy(NumberPlaces& places, const void* from, const void* to, std::size_t bytes) {
  const double *at = static_cast<const double*>(from), *copy = static_cast<const double*>(to);
  for (std::size_t k = 0; k < bytes / sizeof(double); ++k)
    if (const auto place = places.find(at + k); place != places.end()) places[copy + k] = place->second;
}

void add_copy(NumberPlaces& places, const Tree& from, const Tree& to) {
  const auto add = [&](const auto* a, const auto* b, int n) { add_copy(places, a, b, static_cast<std::size_t>(n) * sizeof(*a)); };
  add(&from, &to, 1), add(from.link, to.link, to.links), add(from.passive, to.passive, to.nv);
  add(from.loop_motion, to.loop_motion, to.loop_motions);
  add(from.loops.constraint, to.loops.constraint, to.loops.constraints + to.loops.motor_constraints);
}

RecordedResult record(const Tree& tree, const RecordedOperation& operation, const Frame& frame,
                      const std::vector<std::optional<Ids>>& in) {
  std::vector<std::vector<Symbolic>> rows(max_inputs);
  const Symbolic* inputs[max_inputs] = {};
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (!in[k]) continue;
    for (const int i : *in[k]) rows[k].push_back(Symbolic::of(i));
    inputs[k] = rows[k].data();
  }
  std::vector<Symbolic> out(static_cast<std::size_t>(size_of_result(operation, tree)), Symbolic(0.0));
  const Parameters parameters = {frame, 0, nullptr, false};
  NumberPlaces places = Graph::current()->places ? *Graph::current()->places : NumberPlaces();
  if (!places.empty() && frame.placed >= 0) add_copy(places, &tree.frame[frame.placed].X, &parameters.frame.X, sizeof frame.X);
  const WithPlaces scope_of_places(std::move(places));
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  const Symbolic status = run(operation.operation, {tree, arena, parameters, inputs, nullptr, out.data()});
  Ids ids;
  for (const Symbolic& x : out) ids.push_back(x.id);
  return {ids, status.id};
}

RecordedTasks record(const Tree& tree, const TaskControl& control, const TaskInputs& in) {
  const auto records = [](const Ids& ids, std::size_t least) {
    std::vector<Symbolic> all;
    for (const int i : ids) all.push_back(Symbolic::of(i));
    all.resize(std::max(least, all.size()), Symbolic(0.0));
    return all;
  };
  const auto ids = [](const std::vector<Symbolic>& all) {
    Ids operations;
    for (const Symbolic& x : all) operations.push_back(x.id);
    return operations;
  };
  std::size_t rows = 0;
  for (const Task& task : control.task) rows += static_cast<std::size_t>(task.rows());
  const auto parameter = records(in.parameter, 1), call = records(in.call, 1), time = records(in.time, 1), q = records(in.q, 1),
             v = records(in.v, 1), z = records(in.z, 1);
  const std::size_t nv = static_cast<std::size_t>(tree.nv), states = static_cast<std::size_t>(control.states);
  auto motor = records({}, nv + static_cast<std::size_t>(tree.loop_nv)), a = records({}, nv), error = records({}, rows),
       missed = records({}, rows), z_dot = records({}, states), efforts = records({}, 0);
  TaskReport<Symbolic> report;
  Symbolic damping = 0.0;
  report.a = a.data(), report.error = error.data(), report.missed = missed.data(), report.damping = &damping;
  const Symbolic status = task_control<Symbolic>(tree, thread_arena(), control, parameter.data(), call.data(), time[0], q.data(),
                                                 v.data(), z.data(), nullptr, motor.data(), z_dot.data(), {}, report);
  // damping of tasks requires more digits than single precision has
  if (Symbolic::graph().single) Symbolic::graph().assume((damping < Symbolic(1e-30)).id);
  for (const TaskMotor& at : control.motor) efforts.push_back(motor[static_cast<std::size_t>(at.iv)]);
  return {ids(efforts), ids(a), ids(error), ids(missed), ids(z_dot), status.id};
}

}  // namespace sarrus
