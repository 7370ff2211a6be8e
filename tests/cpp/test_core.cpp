// Every operation, on mechanisms with every type of joint: one state at a time, many states at once, and from several threads.
// tools/sanitize.sh builds this program with sanitizers; therefore each array has an allocation of its own. The Python tests
// check the values. Here many states must have the results of single states, for any number of threads, and a few laws must hold.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "../../cpp/elements/list.hpp"
#include "../../cpp/kernels/batch.hpp"
#include "../../cpp/kernels/kernels.hpp"
#include "../../cpp/kernels/operation_sizes.hpp"
#include "../../cpp/kernels/variant_copies.hpp"
#include "../../cpp/mechanism/mechanism.hpp"
#include "../../cpp/simulation/record.hpp"
#include "../../cpp/simulation/run_numbers.hpp"
#include "../../cpp/simulation/sampling.hpp"
#include "../../cpp/simulation/simulation_kernels.hpp"

extern "C" const sarrus::KernelTable* sarrus_kernel_table();

namespace {

using namespace sarrus;

int checks = 0, failures = 0;
void check(bool ok, const std::string& what) {
  ++checks;
  if (!ok) ++failures, std::printf("FAILED: %s\n", what.c_str());
}

/// Array of exactly n doubles on the heap, so that a sanitizer detects any access beyond it.
class Array {
 public:
  explicit Array(long n = 0) : size_(n), data_(new double[n]()) {}
  double* data() const { return data_.get(); }
  long size() const { return size_; }
  double& operator[](long i) const { return data_[i]; }

 private:
  long size_;
  std::unique_ptr<double[]> data_;
};

/// Largest difference, relative to the largest number; infinite if one of them is NaN.
double difference(const Array& a, const Array& b) {
  double worst = 0.0, scale = 1.0;
  for (long i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return INFINITY;
    worst = std::max(worst, std::abs(a[i] - b[i])), scale = std::max(scale, std::abs(a[i]));
  }
  return worst / scale;
}

// ---- mechanisms ------------------------------------------------------------------------------------------------------------------

struct Random {
  std::mt19937_64 engine;
  double operator()(double low = -1.0, double high = 1.0) { return std::uniform_real_distribution<double>(low, high)(engine); }
  Vec3<double> vector(double length) { return vec3((*this)() * length, (*this)() * length, (*this)() * length); }
  Vec3<double> axis() {
    const Vec3<double> a = vector(1.0) + vec3(0.0, 0.0, 1.5);
    return a / a.norm();
  }
  Transform<double> transform() {
    const double angle = (*this)(-3.0, 3.0);
    return {rotation_about(axis(), std::sin(angle), std::cos(angle)), vector(0.3)};
  }
  Inertia<double> inertia() {
    const Transform<double> at_com = transform();
    const Inertia<double> principal = {(*this)(0.5, 3.0), zero3<double>(), {0.3, 0.0, 0.0, 0.4, 0.0, 0.5}};
    return transformed(at_com, principal);
  }
};

struct Kind {
  JointKind kind;
  int nq, nv, mask;
};
const Kind kinds[] = {
    {JointKind::free, 7, 6, 0},          {JointKind::revolute, 1, 1, 0},      {JointKind::fixed, 0, 0, 0},
    {JointKind::prismatic, 1, 1, 0},     {JointKind::helical, 1, 1, 0},       {JointKind::cylindrical, 2, 2, 0},
    {JointKind::universal, 2, 2, 0},     {JointKind::planar, 3, 3, 0},        {JointKind::spherical, 4, 3, 0},
    {JointKind::gimbal, 0, 0, 0},        {JointKind::gimbal, 1, 1, 0b000010}, {JointKind::gimbal, 2, 2, 0b001100},
    {JointKind::gimbal, 3, 3, 0b101010}, {JointKind::gimbal, 4, 4, 0b111001}, {JointKind::gimbal, 5, 5, 0b101111},
    {JointKind::gimbal, 6, 6, 0b111111}};

JointDescription joint(const Kind& k, Random& random) {
  JointDescription j{};
  j.kind = k.kind, j.nq = k.nq, j.nv = k.nv;
  j.axis = random.axis(), j.axis2 = random.axis();
  visit_every(k.kind, 0, [&](auto joint) {
    joint.fields(j.constants, [&](const char*, auto& x, const char*) {
      if constexpr (std::is_same_v<decltype(x), int&>)
        x = k.mask;
      else
        x = random(-0.2, 0.2);
    });
  });
  j.at_parent = random.transform(), j.at_child = random.transform();
  for (auto* one : {&j.armature, &j.damping, &j.friction, &j.stiffness, &j.rest}) {
    one->resize(k.nv);
    for (double& x : *one) x = random(0.1, 1.0);
  }
  for (int i = 0; i < k.nv; ++i)
    if (k.kind == JointKind::free || (k.kind == JointKind::planar && i < 2)) j.stiffness[i] = 0.0;
  return j;
}

// Numbers of bodies: one of every type of joint and one more floating base (46 velocities), or half of the types twice (59). Neither number is a
// multiple of four or eight, so some lanes are empty. With all types twice, operations of cubic cost would take three times as long.
constexpr int types = static_cast<int>(std::size(kinds)), small = types + 1, large = types + types / 2 + 1;

/// Mechanism with every joint type. The parent of each body is an earlier body; the joints are not in outward order. With `floats`, only one joint is
/// connected to the ground.
Description every_joint(unsigned seed, int bodies, bool floats = false) {
  Random random{std::mt19937_64(seed)};
  Description d;
  d.name = "every joint", d.gravity = random.vector(9.81);
  for (int i = 0; i < bodies; ++i) {
    const std::string name = "body" + std::to_string(i);
    d.bodies.push_back({name, random.inertia()});
    JointDescription j = joint(kinds[i % types], random);
    const int drawn = i == 0 ? -1 : static_cast<int>(random(std::max(-1.0, i - 3.0), i - 1e-9) + 1.0) - 1;
    const int onto = floats && i > 0 ? std::max(drawn, 0) : drawn;
    j.name = "joint" + std::to_string(i), j.child = name, j.parent = onto < 0 ? "ground" : "body" + std::to_string(onto);
    if (i % 3 == 1) std::swap(j.parent, j.child);  // any joint may point towards the ground
    d.joints.push_back(j);
  }
  std::reverse(d.joints.begin() + 3, d.joints.end());
  d.frames.push_back({"tool", "body" + std::to_string(bodies - 1), random.transform()});
  d.frames.push_back({"elbow", "body7", random.transform()});
  d.springs.push_back({"spring", {"body3", "body7"}, {random.vector(1.0), random.vector(1.0)}, 30.0, 0.4, 2.0});
  return d;
}

/// Description with a loop joint of every type, and one constraint of every other kind.
/// The loops are open by random amounts, because these tests need no closed loops.
Description every_constraint(unsigned seed, int bodies) {
  Description d = every_joint(seed, bodies);
  Random random{std::mt19937_64(seed + 100)};
  const auto link = [&](double low, double high) { return "body" + std::to_string(static_cast<int>(random(low, high))); };
  const int inner = 10, outer = std::max(inner, bodies / 2);  // loops connect a body before `inner` with one from `outer` on
  int n = 0;
  for (const Kind& k : kinds) {
    if (k.nv < 3) continue;  // enough rows for a solve, few enough to leave degrees of freedom
    JointDescription j = joint(k, random);
    j.name = "loop" + std::to_string(n), j.parent = n++ == 0 ? "ground" : link(0, inner), j.child = link(outer, bodies - 1);
    j.close_loop = true;
    if (k.kind == JointKind::spherical) j.actuated = true;
    d.joints.push_back(j);
  }
  Law law{{0.0, 0.5}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, {0.2, 3.0, 0.1}};
  d.joints.back().laws = {law, std::nullopt, std::nullopt, std::nullopt, std::nullopt, law};
  Random other{std::mt19937_64(seed + 200)};
  JointDescription cable = joint({JointKind::cable, 1, 1, 0}, other);
  cable.name = "cable", cable.parent = "body2", cable.child = d.bodies.back().name, cable.actuated = true;
  cable.constants.number[0] = 0.01, cable.at_parent.p = other.vector(5.0);  // out of the wheel
  d.joints.insert(d.joints.end() - 1, cable);
  const auto between_bodies = [&](const char* name, const AnyConstraint& kind) {
    d.constraints.push_back(
        {name, kind, link(0, inner), link(outer, bodies - 1), random.transform(), random.transform(), {}, Target::none, {}});
  };
  between_bodies("rod", Distance{{}, 0.5});
  between_bodies("disc", Rolling{{}, 0.5, 0.0, true, false, true});
  between_bodies("ball", Rolling{{}, 0.5, 0.0, false, false, false});
  between_bodies("balls", Rolling{{}, 0.5, 0.7, false, true, false});
  const auto between_coordinates = [&](const char* name, const AnyConstraint& kind,
                                       std::vector<ConstraintDescription::Coordinate> coordinates) {
    ConstraintDescription c{};
    c.name = name, c.kind = kind, c.coordinates = std::move(coordinates);
    d.constraints.push_back(c);
  };
  Law periodic = law;
  periodic.period = 1.0;
  const std::vector<Product> products = {{{1}, {law}}, {{0, 1}, {law, periodic}}};
  between_coordinates("coupler", Coupler{{}, {{1.0, 0.5}, {2.0}}, 0.0, law, products}, {{"joint1", 0}, {"joint3", 0}});
  between_coordinates("rows", Pfaffian{{}, {1, 2, 3, 4, 5, 6, 7}, {0.1}}, {{"joint4", -1}, {"joint0", -1}});
  between_coordinates("rows with the call", Pfaffian{{}, {}, {0.0, 0.0}}, {{"joint8", -1}, {"joint1", -1}});
  for (JointDescription& j : d.joints)
    for (const int i : {1, bodies / 2 + 1, bodies / 2 + 6}) j.actuated |= j.name == "joint" + std::to_string(i);
  return d;
}

/// Return the description without constraints whose rows each call provides, because the rates of these rows are not available.
Description without_rows_of_calls(Description d) {
  const auto comes_with_call = [](const ConstraintDescription& c) { return c.name == "rows with the call"; };
  d.constraints.erase(std::remove_if(d.constraints.begin(), d.constraints.end(), comes_with_call), d.constraints.end());
  return d;
}

/// One body welded to the ground: every array over q and v is empty.
Description welded() {
  Random random{std::mt19937_64(1)};
  Description d;
  d.name = "welded", d.gravity = vec3(0.0, 0.0, -9.81);
  d.bodies.push_back({"block", random.inertia()});
  JointDescription j = joint({JointKind::fixed, 0, 0, 0}, random);
  j.name = "weld", j.parent = "ground", j.child = "block";
  d.joints.push_back(j);
  d.frames.push_back({"tool", "block", random.transform()});
  d.frames.push_back({"elbow", "block", random.transform()});
  return d;
}

// ---- operations ------------------------------------------------------------------------------------------------------------------

struct Info {
  const char *name, *inputs, *axes;
  unsigned facts;
};
using namespace fact;
const Info infos[] = {
#define SARRUS_INFO(name, ...) {#name, __VA_ARGS__},
    SARRUS_OPERATIONS(SARRUS_INFO)
#undef SARRUS_INFO
};

struct Input {
  std::string name;
  bool optional;
};
std::vector<Input> inputs_of(const Info& info) {
  std::vector<Input> all;
  std::string word;
  for (const char* c = info.inputs;; ++c) {
    if (*c && *c != ' ') {
      word += *c;
      continue;
    }
    const bool optional = word.back() == '?';
    if (optional) word.pop_back();
    all.push_back({word, optional});
    word.clear();
    if (!*c) return all;
  }
}

constexpr int waypoints = 3;

int result_size(const Info& info, const Tree& t) {
  int n = 1;
  for (const char* c = info.axes; *c; ++c) n *= *c == 'W' ? waypoints : size_of_axis(*c, t);
  return n;
}
/// Number of entries of a row.
int row_size(const std::string& input, const Tree& t) { return size_of_input(input, t) * (input == "waypoints" ? waypoints : 1); }

int rows_of_positions(const Tree& t) {
  int count = 0;
  for (int i = 0; i < t.loops.constraints; ++i)
    for (int r = 0; r < t.loops.constraint[i].rows; ++r)
      count += visit_constraint(t.loops.constraint[i].kind, [r](const auto& kind) { return kind.holonomic(r); });
  return count;
}

/// Solver of quadratic programmes that always fails; it replaces the library's solver.
int fails(int, int, const double*, const double*, const double*, const double*, const double*, double*, double*) { return -2; }

/// Rows of states for one mechanism, each input in an array of its own.
class States {
 public:
  States(const Mechanism& m, long count, unsigned seed) : m_(m), count_(count) {
    Random random{std::mt19937_64(seed)};
    const Tree& t = m.tree();
    for (const char* name : {"q",
                             "q0",
                             "q1",
                             "v",
                             "a",
                             "tau",
                             "dv",
                             "base_velocity",
                             "base_acceleration",
                             "cached",
                             "time",
                             "near",
                             "restitution",
                             "momentum",
                             "multipliers",
                             "loop_efforts",
                             "pfaffian_values",
                             "rows",
                             "weight",
                             "weights",
                             "preload",
                             "limits",
                             "sharing",
                             "rates",
                             "scale",
                             "tangent",
                             "displacements",
                             "cotangent",
                             "effort_cotangent",
                             "gains",
                             "steps",
                             "pfaffian_rates",
                             "coordinates",
                             "independent",
                             "piece",
                             "guide",
                             "prescribed",
                             "waypoints",
                             "loads",
                             "compliance",
                             "least_pivot"}) {
      const int n = row_size(name, t);
      Array& rows = put(name, n);
      for (long i = 0; i < rows.size(); ++i) rows[i] = random();
      for (const char* size : {"weight", "weights", "sharing", "scale", "gains"})
        for (long i = 0; !std::strcmp(name, size) && i < rows.size(); ++i) rows[i] = 1.0 + 0.5 * rows[i];
      for (long i = 0; !std::strcmp(name, "coordinates") && i < rows.size();
           ++i)  // every velocity, or two velocities and a component of the frame
        rows[i] = i / n % 2           ? (i % n < t.nv ? i % n + 1 : 0)
                  : i % n < 2         ? i % n + 1
                  : i % n == t.nv + 4 ? std::min(t.nv, 2) + 1
                                      : 0;
      for (long i = 0; !std::strcmp(name, "independent") && i < rows.size(); ++i)  // as many as are free, or all velocities
        rows[i] = i / n % 2 || i % n < n - t.loops.rows ? i % n + 1 : i % n < n - rows_of_positions(t) ? -(i % n + 1) : 0;
      for (long i = 0; !std::strcmp(name, "guide") && i < count; ++i)
        rows[i * n] = i % 2 ? t.nv : 2;  // too many rows, and too few
      for (long i = 1; !std::strcmp(name, "tangent") && i < count; ++i) rows[i] = rows[0];  // one choice for all states of a call
      for (long i = 0; !std::strcmp(name, "prescribed") && i < rows.size(); ++i) rows[i] = i % n == 0;
      for (long i = 0; !std::strcmp(name, "steps") && i < count; ++i)  // damping, number of steps, largest initial residual
        rows[3 * i] = 1.0, rows[3 * i + 1] = 3.0, rows[3 * i + 2] = 1e300;
      if (name[0] != 'q') continue;
      for (long i = 0; i < count; ++i)
        for (const int k : m.quaternions()) {
          double* p = rows.data() + i * n + k;
          const double norm = std::sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]);
          for (int c = 0; c < 4; ++c) p[c] /= norm;
        }
    }
    for (Array& w : wrench_) {
      w = Array(6 * count);
      for (long i = 0; i < w.size(); ++i) w[i] = random();
    }
    for (const char* name : {"tool", "elbow"}) {
      const auto& f = m.placed_frame(name);
      frames_.push_back({f.link, f.body, f.X, ExpressedIn::frame, m.number_of(f)});
    }
  }

  long count() const { return count_; }
  const Array& row(const std::string& name) const { return rows_.at(name); }
  void know(Array motion) { rows_["cached"] = std::move(motion); }

  /// Return the result of an operation for every state, by the one-state kernel, and count the states without an answer.
  Array one(int op, ExpressedIn in, bool with_optional, int* unanswered = nullptr) const {
    const KernelTable& table = *sarrus_kernel_table();
    const int n = result_size(infos[op], m_.tree());
    Array out(n * count_);
    for (long i = 0; i < count_; ++i) {
      const Rows r = rows(op, with_optional);
      const double* at[max_inputs];
      for (int k = 0; k < max_inputs; ++k) at[k] = r.in[k] ? r.in[k] + i * r.in_step[k] : nullptr;
      const double* wrench[] = {wrench_[0].data() + 6 * i, wrench_[1].data() + 6 * i};
      Array result(n);
      const double status = table.single[op](m_.tree(), parameters(op, in), at, wrench, result.data());
      if (unanswered) *unanswered += status != 0.0;
      std::copy_n(result.data(), n, out.data() + i * n);
    }
    return out;
  }
  /// Return the result for one state, by another mechanism of the same structure.
  Array one_of(const Mechanism& m, int op, long row, double& status) const {
    const Rows r = rows(op, true);
    const double* at[max_inputs];
    for (int k = 0; k < max_inputs; ++k) at[k] = r.in[k] ? r.in[k] + row * r.in_step[k] : nullptr;
    const double* wrench[] = {wrench_[0].data() + 6 * row, wrench_[1].data() + 6 * row};
    std::vector<Frame> frames = frames_;
    for (Frame& f : frames) f.X = m.placed_frame(&f == &frames[0] ? "tool" : "elbow").X;
    Parameters p = parameters(op, ExpressedIn::frame);
    p.frame.X = frames[0].X, p.wrench_frame = frames.data();
    Array result(result_size(infos[op], m.tree()));
    status = sarrus_kernel_table()->single[op](m.tree(), p, at, wrench, result.data());
    return result;
  }
  /// Return the results for all states, as variants of the mechanism.
  Array of_variants(const Mechanism& all, int op, ManyVariants side_by_side, std::vector<signed char>& status) const {
    const KernelTable& table = *sarrus_kernel_table();
    const int n = result_size(infos[op], m_.tree());
    Array out(n * count_);
    const double* wrench[] = {wrench_[0].data(), wrench_[1].data()};
    const std::int64_t wrench_step[] = {6, 6};
    Rows r = rows(op, true);
    status.assign(count_, 0);
    r.wrench = wrench, r.wrench_step = wrench_step, r.out = out.data(), r.out_size = n, r.status = status.data();
    const Parameters p = parameters(op, ExpressedIn::frame);
    Batch{all, table.many[op], table.each[op], side_by_side, table.lanes, p, r, count_, {}, false, false, false}.run(
        2, [] { return false; });
    return out;
  }
  /// Return the results by the kernel for many states, on `threads` threads with unequal numbers of states.
  Array many(int op, ExpressedIn in, bool with_optional, int threads) const {
    const KernelTable& table = *sarrus_kernel_table();
    const int n = result_size(infos[op], m_.tree());
    Array out(n * count_);
    const double* wrench[] = {wrench_[0].data(), wrench_[1].data()};
    const long wrench_step[] = {6, 6};
    Rows r = rows(op, with_optional);
    std::vector<signed char> status(count_);
    r.wrench = wrench, r.wrench_step = wrench_step, r.out = out.data(), r.out_size = n, r.status = status.data();
    const Parameters p = parameters(op, in);
    std::vector<std::thread> others;
    const long packets = (count_ + table.lanes - 1) / table.lanes;  // the last one may not be full
    for (int t = 0; t < threads; ++t) {
      const long begin = packets * t / threads * table.lanes;
      const long end = std::min(count_, packets * (t + 1) / threads * table.lanes);
      if (begin < end) others.emplace_back([&, begin, end] { table.many[op](m_.tree(), p, r, begin, end); });
    }
    for (std::thread& t : others) t.join();
    return out;
  }

 private:
  Array& put(const std::string& name, int n) { return rows_[name] = Array(n * count_); }
  Parameters parameters(int op, ExpressedIn in) const {
    Parameters p{frames_[0], infos[op].facts & loads ? 2 : 0, frames_.data(), false};
    p.frame.expressed_in = in, p.inputs = waypoints, p.solve = &fails;
    return p;
  }
  Rows rows(int op, bool with_optional) const {
    Rows r{};
    int k = 0;
    for (const Input& input : inputs_of(infos[op])) {
      if (with_optional || !input.optional) {
        r.in[k] = rows_.at(input.name).data(), r.in_size[k] = row_size(input.name, m_.tree());
        // the ground has the same motion in all states: one row, which is broadcast
        r.in_step[k] = input.name.rfind("base_", 0) == 0 ? 0 : r.in_size[k];
      }
      ++k;
    }
    return r;
  }

  const Mechanism& m_;
  long count_;
  std::unordered_map<std::string, Array> rows_;
  Array wrench_[2];
  std::vector<Frame> frames_;
};

int find(const char* name) {
  for (int op = 0; op < operations; ++op)
    if (!std::strcmp(infos[op].name, name)) return op;
  return -1;
}

/// True for derivatives that kernels/rate_kernels.cpp computes from other operations, along all directions; with sanitizers each of them takes a
/// second.
bool is_rate(int op) { return op >= static_cast<int>(Operation::pose_derivatives); }

/// True for operations of many steps, which accumulate much rounding if loops are open.
bool is_walk(const std::string& name) {
  return name.rfind("configuration", 0) == 0 || name.rfind("branch", 0) == 0 || name == "close";
}

// tolerance of rounding errors: sums of some thousand terms in a different order, and a solve with a condition number of about 1e3
constexpr double rounding = 1e-10;

void many_say_what_one_says(const Mechanism& m, States& states) {
  const KernelTable& table = *sarrus_kernel_table();
  States two(m, 2, 3);
  for (States* s : {&states, &two}) s->know(s->one(find("kinematics"), ExpressedIn::frame, true));
  for (int op = 0; op < operations; ++op) {
    // without a kernel for many states, an operation computes all states by the same code, so two states are enough
    const States& asked = table.many[op] == table.each[op] ? two : states;
    // the loops are open here: efforts and motions that do not exist leave more than rounding in the statics of substructures
    const bool statics = op == find("mobility_numbers") || op == find("actuator_efforts") || op == find("loop_jacobian") ||
                         op == find("effort_regressor") || op == find("actuator_efforts_vjp");
    if (m.tree().loops.substructures && statics) continue;
    if (op == find("mobility_numbers") && m.tree().nv > 40)
      continue;  // with so many open rows, rounding decides which rows are dependent
    if (!std::strncmp(infos[op].name, "branch", 6) && m.tree().nv > 50)
      continue;  // takes minutes: it halves its steps until the loops close, which is impossible
    for (const ExpressedIn in : {ExpressedIn::frame, ExpressedIn::world, ExpressedIn::world_aligned})
      for (const bool with_optional : {true, false}) {
        if (in != ExpressedIn::frame && !(infos[op].facts & at_frame)) continue;
        const bool dear = op == find("equilibrium") || is_walk(infos[op].name) || is_rate(op) || infos[op].facts & dense ||
                          std::strstr(infos[op].name, "_by_dimensions");
        if (dear && (!with_optional || in != ExpressedIn::frame)) continue;  // expensive operations: only one variation
        // rows that depend on q are inputs of every call
        if (!with_optional && m.tree().loops.pfaffian_values > 0 && std::strstr(infos[op].inputs, "pfaffian_values")) continue;
        const bool walks = is_walk(infos[op].name);
        const std::string name = std::string(infos[op].name) + " of " + std::to_string(m.tree().nv) + " velocities";
        int unanswered = 0;
        const Array one = asked.one(op, in, with_optional, &unanswered);
        if (op == find("forward_dynamics"))
          check(unanswered == 0, "the rows are independent: else rounding decides what is compared");
        const bool on_threads = with_optional && in == ExpressedIn::frame;
        const Array many = asked.many(op, in, with_optional, on_threads ? 4 : 1);
        check(walks || difference(one, many) < rounding, name + ": many states differ from one");
        if (!on_threads || (dear && !walks)) continue;
        const Array alone = asked.many(op, in, with_optional, 1);
        check(!std::memcmp(many.data(), alone.data(), many.size() * sizeof(double)), name + ": the result depends on threads");
      }
  }
}

void laws(const Mechanism& m, const States& s) {
  const Tree& t = m.tree();
  const ExpressedIn in = ExpressedIn::frame;
  const Array M = s.one(find("mass_matrix"), in, true), inverse = s.one(find("mass_matrix_inverse"), in, true);
  double asymmetry = 0.0, off_identity = 0.0;
  for (long n = 0; n < s.count(); ++n) {
    const double *A = M.data() + n * t.nv * t.nv, *B = inverse.data() + n * t.nv * t.nv;
    for (int i = 0; i < t.nv; ++i)
      for (int j = 0; j < t.nv; ++j) {
        double sum = i == j ? -1.0 : 0.0;
        for (int k = 0; k < t.nv; ++k) sum += A[i * t.nv + k] * B[k * t.nv + j];
        asymmetry = std::max(asymmetry, std::abs(A[i * t.nv + j] - A[j * t.nv + i])),
        off_identity = std::max(off_identity, std::abs(sum));
      }
  }
  check(asymmetry < rounding, "the mass matrix is symmetric");
  check(off_identity < rounding, "the mass matrix times its inverse is one");

  // M a + h = tau, and back: with the same wrenches and joint forces in both directions
  if (t.loops.rows == 0) {
    States there(m, s.count(), 7);
    const Array acceleration = there.one(find("forward_dynamics"), in, false);
    std::copy_n(acceleration.data(), acceleration.size(), there.row("a").data());
    check(difference(there.row("tau"), there.one(find("inverse_dynamics"), in, false)) < rounding,
          "inverse after forward dynamics");
  }

  // q0 + (q1 - q0) = q1, up to the sign of a quaternion
  const Array dv = s.one(find("difference"), in, true);
  States back(m, s.count(), 0);
  std::copy_n(s.row("q0").data(), back.row("q").size(), back.row("q").data());
  std::copy_n(dv.data(), dv.size(), back.row("dv").data());
  Array q1 = back.one(find("integrate"), in, true);
  for (long n = 0; n < s.count(); ++n)
    for (const int k : m.quaternions()) {
      double *got = q1.data() + n * t.nq + k, *want = s.row("q1").data() + n * t.nq + k, along = 0.0;
      for (int c = 0; c < 4; ++c) along += got[c] * want[c];
      if (along < 0.0)
        for (int c = 0; c < 4; ++c) got[c] = -got[c];
    }
  check(difference(s.row("q1"), q1) < rounding, "integrate after difference");
}

/// Threads that have not run a kernel before share one mechanism and mix operations.
void threads_share_a_mechanism(const Mechanism& m, const States& states) {
  const int names[] = {find("inverse_dynamics"), find("forward_dynamics"), find("mass_matrix"), find("coriolis_matrix")};
  std::vector<Array> expected, got(4);
  for (const int op : names) expected.push_back(states.one(op, ExpressedIn::frame, true));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 4; ++round) got[i] = states.one(names[(i + round) % 4], ExpressedIn::frame, true);
    });
  for (std::thread& t : threads) t.join();
  for (int i = 0; i < 4; ++i)
    check(difference(expected[(i + 3) % 4], got[i]) == 0.0,
          "a state's result depends on the thread of " + std::to_string(m.tree().nv));
}

/// A copy with other parameters has the same results, bit for bit, as a new mechanism, also after its original is destroyed.
void copies_live_alone(const Description& d) {
  Description changed = d;
  changed.gravity(0) += 1.0;
  for (BodyDescription& b : changed.bodies) b.inertia += b.inertia;
  for (JointDescription& j : changed.joints) {
    j.at_parent.p(1) += 0.1, j.at_child.p(2) -= 0.1;
    for (double& x : j.armature) x *= 1.5;
  }
  for (SpringDescription& s : changed.springs) s.stiffness *= 2.0;
  auto original = std::make_unique<Mechanism>(d);
  auto copy = std::make_unique<Mechanism>(*original, changed);
  original.reset();
  const Mechanism again(*copy, changed), anew(changed);
  copy.reset();
  for (const char* name : {"inverse_dynamics", "forward_dynamics", "pose", "constraint_jacobian"}) {
    const Array one = States(again, 2, 3).one(find(name), ExpressedIn::frame, true);
    const Array other = States(anew, 2, 3).one(find(name), ExpressedIn::frame, true);
    check(!std::memcmp(one.data(), other.data(), one.size() * sizeof(double)), std::string(name) + " of a copy is another");
  }
}

void stretch(Description& d, double factor) {
  d.gravity(1) = factor;
  for (BodyDescription& b : d.bodies)
    b.inertia = transformed(Transform<double>{Mat3<double>::Identity(), vec3(0.0, 0.0, 0.1 * factor)}, b.inertia);
  for (JointDescription& j : d.joints) {
    j.at_parent.p(1) += 0.1 * factor, j.at_child.p(2) -= 0.1 * factor;
    for (double& x : j.damping) x *= 1.0 + factor;
  }
  for (FrameDescription& f : d.frames) f.X.p(0) += factor;
}

/// Variants of a mechanism, and separate mechanisms with the same parameters.
struct Varied {
  const long count = sarrus_kernel_table()->lanes + 1;
  const Mechanism like;
  std::vector<std::unique_ptr<Mechanism>> each;
  std::unique_ptr<Mechanism> all;

  explicit Varied(const Description& d) : like(d) {
    auto variants = std::make_shared<Variants>(like);
    std::vector<std::int64_t> which;
    for (long i = 0; i < count; ++i) {
      Description changed = d;
      stretch(changed, 0.1 * (i + 1));
      each.push_back(std::make_unique<Mechanism>(like, changed));
      variants->description() = std::move(changed);
      variants->add();
      which.push_back(i);
    }
    variants->finish();
    all = std::make_unique<Mechanism>(like, variants, which);
  }
};

/// Each variant has the results of a mechanism with its parameters: in lanes, one by one, and with several states per variant.
void variants_answer_for_themselves(const Varied& varied) {
  const auto& [count, like, each, all] = varied;
  const KernelTable& table = *sarrus_kernel_table();
  for (const long states : {1L, 12L}) {
    States rows(like, count * states, 11);
    for (int op = 0; op < operations; ++op) {
      const std::string name = infos[op].name;
      if (states > 1 && name != "forward_dynamics" && name != "pose") continue;
      if (infos[op].facts & floats && !like.tree().floats) continue;
      if (is_rate(op)) continue;  // they are evaluated one by one, by kernels of other operations
      if (name.rfind("cached", 0) == 0 || name == "equilibrium" || is_walk(name)) continue;
      if (!table.variants[op] && like.tree().loops.substructures) continue;  // operations of cubic cost
      std::vector<double> said(count);
      std::vector<Array> expected;
      for (long i = 0; i < count; ++i) expected.push_back(rows.one_of(*each[i], op, i * states, said[i]));
      for (const bool side_by_side : {false, true}) {
        if (side_by_side && !table.variants[op]) continue;
        std::vector<signed char> status;
        const Array got = rows.of_variants(*all, op, side_by_side ? table.variants[op] : nullptr, status);
        for (long i = 0; i < count; ++i) {
          const Array here(expected[i].size());
          std::copy_n(got.data() + i * states * here.size(), here.size(), here.data());
          check(said[i] == status[i * states] || name == "least_motion",
                name + ": the status of a variant is another");  // as above
          check(said[i] != 0.0 || difference(expected[i], here) < rounding, name + " of a variant is another");
        }
      }
    }
  }
}

template <class Change> void refused(const char* what, Change change) {
  Description d = every_joint(1, small);
  change(d);
  try {
    const Mechanism m(d);
    check(false, std::string(what) + " is accepted");
  } catch (const ModelError&) {
    check(true, what);
  }
}

void wrong_descriptions() {
  refused("a body named twice", [](Description& d) { d.bodies[1].name = d.bodies[2].name; });
  refused("a joint named twice", [](Description& d) { d.joints[1].name = d.joints[2].name; });
  refused("a body named ground", [](Description& d) { d.bodies.push_back({"ground", Inertia<double>::zero()}); });
  refused("a body that no joint carries", [](Description& d) { d.bodies.push_back({"loose", Inertia<double>::zero()}); });
  refused("a joint to nowhere", [](Description& d) { d.joints[0].parent = "nowhere"; });
  refused("a joint of a body with itself", [](Description& d) { d.joints[0].parent = d.joints[0].child; });
  refused("a frame on nothing", [](Description& d) { d.frames[0].body = "nowhere"; });
  refused("two joints that must stay in one loop's tree", [](Description& d) {
    JointDescription again = d.joints[0];
    again.name = "again", again.keep_in_tree = d.joints[0].keep_in_tree = true;
    d.joints.push_back(again);
  });
  refused("a coupler of a joint that is not there", [](Description& d) {
    ConstraintDescription c{};
    c.name = "c", c.kind = Coupler{{}, {{1.0}}, 0.0, {}}, c.coordinates = {{"nothing", 0}};
    d.constraints.push_back(c);
  });
  refused("two frames of one name", [](Description& d) { d.frames[0].name = d.frames[1].name; });
}

}  // namespace

/// All force elements on a mechanism, as the plan of a run, with the terms that a run evaluates instead of the tree; optionally with those of
/// variants of the mechanism.
class AllThatActs {
 public:
  explicit AllThatActs(const Mechanism& m, const Mechanism* variants = nullptr)
      : m_(m), list_(m.tree().nv + m.tree().loop_nv), run_terms_(m.tree()) {
    const Tree& t = m.tree();
    const PassiveTerms* freedom = t.passive;
    int iv = 0;  // first velocity whose coordinate is not part of a quaternion
    while (iv < t.nv && freedom[iv].iq < 0) ++iv;
    const JointCoordinate joint = {iv < t.nv ? freedom[iv].iq : 0, iv < t.nv ? iv : 0};
    const auto& tool = m.placed_frame("tool");
    const BodyFrame frame = {tool.link, m.number_of(tool)};
    const Direction e_x = {vec3<double>(1.0, 0.0, 0.0)}, e_y = {vec3<double>(0.0, 1.0, 0.0)}, e_z = {vec3<double>(0.0, 0.0, 1.0)};
    const Law law = {{0.0}, {0.3, 0.1}, {}};
    const Law* kept = list_.keep(law);
    const Law* of_runs =
        list_.keep({{}, {}, {}, {law, {{0.0}, {0.2}, {0.1, 3.0, 0.2}}}, 30});  // laws of which the parameters select one
    const PID controller = {{}, joint, kept, {0}, {1}, {2}, {{3}, {4}}};
    list_.add(controller);
    list_.add(FeedforwardEffort{{}, {0}, of_runs});
    list_.add(LuGreFriction{{}, {t.nv - 1}, {5}, {6}, {7}, {8}, {9}});
    list_.add(CompliantContact{{}, frame, e_z, -1.0, 0.1, kept, e_x, {{10}, {11}, {12}, {13}, {14}}});
    const BodyFrame ground = {0, m.number_of(m.placed_frame("ground"))};
    const BetweenFrames to_ground = {{}, frame, ground};
    list_.add(PinClearance{to_ground, e_z, {21}, {20}, {{10}, {11}, {12}, {13}, {14}}});
    list_.add(Bushing{to_ground, {0}, {0}, {0}});
    list_.add(GasSpring{to_ground, {17}, {1}, {0}, {1}, {2}, {22}, {20}, {14}, {18}, {22}});
    list_.add(RigidContact{{}, frame, ground, e_z, -1.0, 0.1, {13}, {12}});
    const auto scene = std::make_shared<Scene>();
    scene->shapes = {{{ShapeKind::sphere, 0.3}, 0, Transform<double>::identity()},
                     {{ShapeKind::plane}, 1, {Mat3<double>::Identity(), vec3<double>(0.0, 0.0, -0.5)}}};
    scene->allow(0, 1, 0.5, 0.1);
    list_.add(CollisionContacts{{}, scene, {frame, ground}, {13}, {12}});
    list_.add(Thruster{{}, frame, e_y, kept, {{19}, {20}}});
    list_.add(AppliedWrench{{}, frame, {{kept, of_runs, kept, kept, kept, kept}}, {21}, false});
    list_.add(ReactionWheel{{}, {t.nv - 1}, {31}, kept, {21}, {22}});
    list_.add(EndStop{{}, {joint}, {{15}, {16}}, {17}, {18}, false});
    list_.add(ActuatorModel{{}, {t.nv - 1}, 2, {23}, {24}, {25}, {26}});
    list_.add(EffortTable{{}, {times, times + 3}, {{0}}, {27}});
    list_.add(ZeroOrderHold{{}, {times, times + 3}, {{0}}, {27}});
    SampleAndHold late{};  // a controller with a delay
    late.controllers = list_.keep_inner([&](ForceElementList& inner) { inner.add(controller); });
    late.period = 1.5e-5, late.delay = 1e-5;
    list_.add(late);
    list_.limit_efforts(std::vector<double>(t.nv + t.loop_nv, 0.2));
    limits_[0] = {Quantity::position, joint.iq, -0.5, 0.5}, limits_[1] = {Quantity::effort, joint.iv, -0.1, 0.1};
    if (variants) {
      VariantCopy copy(variants->variants()->view(), 0, thread_arena());
      for (const std::int64_t i : variants->variant_indices()) copy.take(i), run_terms_.add(copy.tree());
    }
    frictions_ = run_terms_.frictions(t);
    plan.frictions = static_cast<int>(frictions_.size()), plan.friction = frictions_.data();
    for (const LoopSpring& spring : run_terms_.springs(t)) list_.add(spring);
    const std::vector<LoopAngle>& angles = run_terms_.angles();
    ForceElements& all = plan.force_elements;
    all = list_.all();
    all.parameters = static_cast<int>(std::size(parameter));
    plan.loop_angle = angles.data(), plan.loop_angles = static_cast<int>(angles.size()), plan.counted = all.held_size;
    if (plan.counts()) all.held_size += t.loop_nq, plan.drives_loop_joints = true;
    plan.limits = 2, plan.limit = limits_, plan.records = plan.measures = true, plan.watches_rates = t.loops.pfaffian_values == 0;
    pfaffian_values_.resize(t.loops.pfaffian_values);
    plan.self = &pfaffian_values_;
    plan.pfaffian = [](void* self, const double*, const double*, bool, double* numbers) {
      const auto& zeros = *static_cast<std::vector<double>*>(self);
      std::copy(zeros.begin(), zeros.end(), numbers);
      return true;
    };
    const std::size_t units = plan.units(t);
    units_.resize(units * (variants ? variants->variant_indices().size() : 1));
    for (std::size_t k = 0; k < units_.size(); ++k) units_[k] = 1.0 + 0.1 * static_cast<double>(k / units);
    memory_.resize(RunNumbers::bytes(t, static_cast<int>(units)) / sizeof(double));
    const RunNumbers numbers(t, static_cast<int>(units), reinterpret_cast<char*>(memory_.data()));
    numbers.take<double>(t, plan, [&](int) { return units_.data(); });
    numbers.give(plan, t);
    tree_ = &numbers.tree();
    if (!variants) return;
    plan.variants = &variants->variants()->view(), plan.variant = variants->variant_indices().data(),
    plan.units_of = units_.data();
  }
  AllThatActs(const AllThatActs&) = delete;
  AllThatActs& operator=(const AllThatActs&) = delete;

  const Tree& tree() const { return *tree_; }
  int size() const { return m_.tree().nq + m_.tree().nv + plan.force_elements.nz + plan.force_elements.held_size; }
  int wide() const { return size() + carried_size(plan); }
  /// Return rows that begin at these states.
  std::vector<double> rows(const States& states) const {
    const int nq = m_.tree().nq, nv = m_.tree().nv;
    std::vector<double> x(states.count() * wide(), 0.0);
    for (long i = 0; i < states.count(); ++i) {
      double* row = x.data() + i * wide();
      std::copy_n(states.row("q").data() + i * nq, nq, row), std::copy_n(states.row("v").data() + i * nv, nv, row + nq);
      begin_carried(plan, row + size());
    }
    return x;
  }

  static constexpr double times[] = {-1.0, 5e-6, 1.0};
  static constexpr double parameter[] = {3.0, 2.0,  1.0, -1.0, 1.0, 0.2, 0.3,  0.01, 50.0, 1.0, 1e3,  1.5, 0.3,  0.5, 1e-2, -0.5,
                                         0.5, 50.0, 2.0, 0.0,  0.2, 0.1, 0.05, 80.0, 0.7,  0.5, 20.0, 0.1, -0.2, 0.3, 1.0,  0.1};
  Plan plan{};

 private:
  const Mechanism& m_;
  ForceElementList list_;
  RunTerms run_terms_;
  std::vector<JointFriction> frictions_;
  Limit limits_[2];
  std::vector<double> pfaffian_values_, units_, memory_;
  const Tree* tree_ = nullptr;
};

/// A few steps of every method, for one state and for many, with all force elements.
void simulations(const Mechanism& m, const States& states) {
  if (m.tree().nv == 0) return;  // no velocity to act on
  AllThatActs all(m);
  const Tree& t = all.tree();
  Plan& plan = all.plan;
  const double* parameter = all.parameter;
  const SimulationKernels& kernels = sarrus_kernel_table()->simulation;
  const int size = all.size();
  const long count = states.count();
  constexpr Method methods[] = {Method::euler,       Method::semi_implicit, Method::implicit_midpoint,
                                Method::independent, Method::rkmk4,         Method::contact,
                                Method::rk4,         Method::rk4,           Method::rk4,
                                Method::rosenbrock};
  constexpr Stabilisation stabilisations[] = {Stabilisation::none, Stabilisation::corrective, Stabilisation::baumgarte};
  const bool compares = t.loops.rows == 0;  // with open loops the results are not unique, so they are not compared
  for (std::size_t k = 0; k < std::size(methods); ++k) {  // one method with each stabilisation, all others with one stabilisation
    plan.method = methods[k], plan.stabilisation = stabilisations[k % 3], plan.gains[0] = 2.0, plan.gains[1] = 1.0;
    const int wide = all.wide();
    std::vector<double> x = all.rows(states), together = x;
    for (long i = 0; i < (compares ? count : 1); ++i) kernels.advance(t, plan, parameter, {0.0, 1e-5, 0, 2}, x.data() + i * wide);
    if (t.loops.pfaffian_values > 0) continue;  // runs with rows from a function cannot be side by side
    std::vector<signed char> status(count);
    kernels.advance_many(t, plan, {0.0, 1e-5, 0, 2}, {together.data(), wide, parameter, 0, status.data()}, 0, count);
    if (!compares) continue;
    double off = 0.0, largest = 1.0;
    for (long i = 0; i < count * wide; ++i)
      if (i % wide < size) off = std::max(off, std::abs(x[i] - together[i])), largest = std::max(largest, std::abs(x[i]));
    check(off <= 1e-7 * largest, "many runs are as one by one");
  }
  plan.method = Method::dopri5, plan.stabilisation = Stabilisation::none;
  plan.frictions = 0;  // otherwise the step may end at an instant at which a joint comes to rest
  std::vector<double> x(size, 0.0), there(size), dense(5 * (2 * t.nv + plan.force_elements.nz)), half(size);
  std::copy_n(states.row("q").data(), t.nq, x.data());
  const double tolerance[] = {1e-6, 1e-9};
  std::vector<double> demanded(t.nv + t.loop_nv);  // by controllers
  SimulationKernels::TrialResult taken = {0.0, 1.0, demanded.data()};
  double guard[Guard<double>::size];
  Guard<double>(guard).begin();
  kernels.try_step(t, plan, parameter, 0.0, 1e-5, tolerance, x.data(), guard, there.data(), dense.data(), taken);
  kernels.between(t, plan, parameter, 0.0, 1e-5, 1e-5, x.data(), guard, dense.data(), half.data());
  double off = 0.0;
  for (int k = 0; k < size; ++k) off = std::max(off, std::abs(half[k] - there[k]));
  check(off <= 1e-9, "the polynomial ends where the step does");
}

/// Changes are propagated forward through steps, and a cotangent backward. For trees the second operation must be the transpose of the first; for
/// loops both must only finish.
void derivatives_through_steps(const Mechanism& m, const States& states) {
  if (m.tree().nv == 0) return;
  AllThatActs all(m);
  const Tree& t = all.tree();
  Plan& plan = all.plan;
  plan.frictions = plan.limits = 0, plan.records = false;  // jumps have no derivative
  plan.stabilisation = Stabilisation::none;
  const SimulationKernels& kernels = sarrus_kernel_table()->simulation;
  const int size = all.size(), n = 2 * t.nv + plan.force_elements.nz, numbers = plan.force_elements.parameters;
  const long count = 1, steps = 1, kept = (steps + 1) * size;  // a column per state entry: slow with a sanitizer
  for (const Method method : {Method::semi_implicit, Method::rk4, Method::implicit_midpoint}) {
    plan.method = method;
    std::vector<double> rows = all.rows(states), x(count * kept), S(count * n * n, 0.0), back(count * n),
                        by_number(count * numbers);
    for (long i = 0; i < count; ++i)
      for (long k = 0; k <= steps; ++k) {
        double* row = rows.data() + i * all.wide();
        std::copy_n(row, size, x.data() + i * kept + k * size);
        kernels.advance(t, plan, all.parameter, {0.0, 1e-5, k, 1}, row);
      }
    std::vector<int> of_state(n, -1);
    std::vector<signed char> status(count);
    for (long i = 0; i < count; ++i)
      for (int k = 0; k < n; ++k) S[i * n * n + k * n + k] = 1.0, back[i * n + k] = std::sin(k + 1.0);
    const StepRange range = {{0.0, 1e-5, 0, steps}, x.data(), size, kept, all.parameter, 0, Onto::none, 0.0, status.data()};
    kernels.push_forward(t, plan, range, {S.data(), n, of_state.data()}, 0, count);
    kernels.pull_back(t, plan, range, {back.data(), by_number.data(), {t.nv, t.nv}}, 0, count);
    for (long i = 0; i < count && t.loops.rows == 0; ++i)
      for (int c = 0; c < n; ++c) {
        double sum = 0.0, terms = 1.0;
        for (int r = 0; r < n; ++r) {
          const double term = std::sin(r + 1.0) * S[(i * n + r) * n + c];
          sum += term, terms += std::abs(term);
        }
        check(std::abs(sum - back[i * n + c]) <= 1e-9 * terms, "a cotangent goes back as changes go on");
      }
  }
}

/// Variants in lanes, and variants one by one, have the results of single runs.
void variants_run_for_themselves(const Varied& varied) {
  const auto& [count, like, each, all] = varied;
  const States states(like, count, 5);
  if (like.tree().nv == 0 || like.tree().loops.pfaffian_values > 0) return;
  const SimulationKernels& kernels = sarrus_kernel_table()->simulation;
  const Arena::Scope scope(thread_arena());
  AllThatActs acts(like, all.get());
  std::vector<std::int64_t> which(count);
  std::iota(which.begin(), which.end(), 0);
  for (const Method method : {Method::semi_implicit, Method::rk4, Method::implicit_midpoint}) {
    acts.plan.method = method, acts.plan.stabilisation = Stabilisation::none;
    const int wide = acts.wide(), size = acts.size();
    std::vector<double> x = acts.rows(states), start = x;
    std::vector<signed char> status(count);
    const Sweep sweep = {x.data(), wide, acts.parameter, 0, status.data(), which.data()};
    kernels.advance_many(acts.tree(), acts.plan, {0.0, 1e-5, 0, 2}, sweep, 0, count);
    if (like.tree().loops.rows > 0) continue;  // with open loops the results are not unique, so they are not compared
    for (long i = 0; i < count; ++i) {
      AllThatActs alone(*each[i]);
      alone.plan.method = method, alone.plan.stabilisation = Stabilisation::none;
      double* row = start.data() + i * wide;
      kernels.advance(alone.tree(), alone.plan, alone.parameter, {0.0, 1e-5, 0, 2}, row);
      double off = 0.0, largest = 1.0;
      for (int k = 0; k < size; ++k)
        off = std::max(off, std::abs(x[i * wide + k] - row[k])), largest = std::max(largest, std::abs(row[k]));
      check(off <= 1e-9 * largest, "a variant runs as it does alone");
    }
  }
}

/// Tasks of every kind, with active limits and contacts.
void tasks(const Mechanism& m, const States& states) {
  const Tree& t = m.tree();
  if (t.nv == 0 || t.loops.pfaffian_values > 0) return;
  TaskControl c;
  const auto motor_of = [&](int iv, double weight) { c.motor.push_back({iv, true, 1, weight, -1e-3, 1e-3, 1.0}); };
  for (int k = 0; k < std::min(4, t.nv); ++k) motor_of(k, 1.0);
  if (t.loop_nv > 0) motor_of(t.nv, 2.0);
  const Law law = {{0.0}, {0.3, 0.1}, {}};
  const std::size_t motors = c.motor.size();
  c.drives_loop_joints = true, c.limited = true, c.levels = 2;
  c.solve = &fails;
  const auto targets = [&](int count) {
    c.parameters += count;
    return Targets{std::vector<std::optional<Law>>(count, law), c.parameters - count};
  };
  const auto numbers = [&](int rows) {
    c.parameters += rows;
    return RowNumbers{c.parameters - rows, rows};
  };
  const auto add = [&](int level, auto kind) { c.task.push_back({kind, level, numbers(kind.rows())}); };
  const TaskFrame last = {t.links - 1, Transform<double>::identity()}, middle = {(t.links - 1) / 2, last.X};
  c.contact.push_back({last, {}, 6, 0.5, 0.1, 0.1, 0.05, 20.0, {}, {}});
  c.contact.push_back({last, last.X.R, 4, 0.5, 0.02, 0.0, 0.0, 20.0, {0, 1}, law, 0.02, 0.0, 100.0});
  FrameTask frame;
  frame.frame = last, frame.reference = middle, frame.components = Components({0, 1, 2, 3, 4, 5}), frame.target_axes = true;
  frame.target.numbers = targets(6), frame.stiffness = numbers(6), frame.damping = numbers(6);
  add(1, frame);
  ImpedanceTask impedance;
  impedance.frame = last, impedance.components = Components({0, 4}), impedance.target.numbers = targets(6);
  impedance.mobility = impedance.stiffness = impedance.damping = {1.0, 0.0, 0.0, 1.0}, impedance.wrench = targets(2);
  add(1, impedance);
  CenterOfMassTask center;
  center.components = Components({3, 5}), center.target = targets(2), center.stiffness = numbers(2), center.damping = numbers(2);
  add(1, center);
  MomentumTask momentum;
  momentum.components = Components({0, 4}), momentum.target = targets(2), momentum.gain = numbers(2);
  add(2, momentum);
  ContactForceTask force;
  force.unknown = {static_cast<int>(motors) + 6}, force.target = targets(1);
  add(2, force);
  if (t.loops.rows > 0) {
    MultiplierTask multiplier;
    multiplier.row = {0, t.loops.rows - 1}, multiplier.target = targets(2), multiplier.integral = numbers(2);
    multiplier.state = 0, c.states = 2;
    add(2, multiplier);
  }
  const bool closes = t.loop_motions > 0 && t.loop_motion[0].nq == t.loop_motion[0].nv && t.loop_nv > 0;
  JointsTask joint;
  joint.coordinates = {{closes ? t.nq : 0, closes ? t.nv : 0, true, true}}, joint.target = targets(1);
  joint.stiffness = numbers(1), joint.damping = numbers(1);
  add(2, joint);
  c.motion.push_back({joint.coordinates[0], -0.1, 0.1, 0.5, 10.0, 0.0});
  std::vector<double> parameter(c.parameters, 1.0), motor(t.nv + t.loop_nv), z(2, 0.1), tau(t.nv), a(t.nv), x(c.unknowns());
  for (long i = 0; i < states.count(); ++i) {
    TaskReport<double> report;
    report.x = x.data(), report.tau = tau.data(), report.a = a.data();
    sarrus_kernel_table()->tasks(t, c, parameter.data(), nullptr, 0.1, states.row("q").data() + i * t.nq,
                                 states.row("v").data() + i * t.nv, z.data(), motor.data(), {}, report);
    for (std::size_t k = 0; k < motors; ++k) check(std::abs(x[k]) <= 1e-3, "efforts of tasks keep their limits");
  }
}

/// `test_core threads`: only tests of shared data, on small mechanisms; with the thread sanitizer all tests would take half an hour. One
/// mechanism is large, to cover the remaining code: it is cut into substructures and eliminated front by front, in arenas that grow.
int main(int arguments, char** argument) {
  const bool threads = arguments > 1 && std::string(argument[1]) == "threads";
  const auto in_substructures = [](Description d) { return d.substructures = 1, d; };
  std::vector<Description> all = {every_joint(1, small), in_substructures(every_constraint(3, threads ? small : large))};
  if (!threads) all.insert(all.end(), {every_joint(4, small, true), every_constraint(3, small), welded()});
  for (const Description& d : all) {
    const Mechanism m(d);
    States states(m, threads ? 3 : sarrus_kernel_table()->lanes + 1, 3);  // a full packet, and one that is not full
    many_say_what_one_says(m, states);
    threads_share_a_mechanism(m, states);
    if (threads) continue;
    copies_live_alone(d);
    const Varied varied(d);
    variants_answer_for_themselves(varied), variants_run_for_themselves(varied);
    laws(m, states);
    simulations(m, states);
    const Mechanism held(without_rows_of_calls(d));
    if (arguments > 1) derivatives_through_steps(held, States(held, 1, 3));  // `test_core steps`: takes minutes with a sanitizer
    tasks(m, states);
  }
  wrong_descriptions();
  std::printf("test_core (%s, %d lanes): %d checks, %d of them failed\n", sarrus_kernel_table()->level,
              sarrus_kernel_table()->lanes, checks, failures);
  return failures == 0 ? 0 : 1;
}
