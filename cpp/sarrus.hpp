// sarrus in C++: a Description makes a Robot, whose methods are the functions of a state under the names that they have in Python.
//
//   sarrus::Robot robot(description);                    throws ModelError
//   sarrus::Workspace work;                              of one thread
//   const sarrus::Frame tool = robot.frame("tool");
//   const sarrus::Answer a = robot.forward_dynamics(work, q, v, tau);
//   robot.jacobian(work, q, tool)                        inputs in the order of kernels/operation_list.hpp, optional ones left out at the end;
//   robot.inverse_dynamics(work, q, v, a)                then the frame where there is one, and any number of wrenches
//   robot.mobility(q).degrees_of_freedom                 questions about a configuration are answered by structs: mobility/mobility.hpp
//   robot.simulation(plan).run_fixed(clock, row)         from row = robot.simulation(plan).begin(state): see simulation/driver.hpp
//
// Rows of numbers are whatever has data() and size(): std::vector, std::array, Eigen's vectors, an Answer. Matrices are row by row. How many inputs
// there are is looked at when a call is compiled, how long they are at every call. An answer stands in the workspace until the same function is
// asked again; only a function's first call there allocates, so that a control loop may ask. Without a workspace the same functions return
// Numbers of their own, and throw where there is no answer. A Robot is constant, and any number of threads may ask it.
#pragma once

#include <array>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "elements/list.hpp"
#include "kernels/kernels.hpp"
#include "kernels/operation_sizes.hpp"
#include "mechanism/mechanism.hpp"
#include "mobility/actuation.hpp"
#include "mobility/mobility.hpp"
#include "simulation/driver.hpp"
#include "simulation/events.hpp"

extern "C" const sarrus::KernelTable* sarrus_kernel_table();

namespace sarrus {

using Numbers = std::vector<double>;

/// There is no answer: the state contradicts the constraints, or nothing has inertia along a freedom.
struct NoAnswer : std::domain_error {
  using std::domain_error::domain_error;
};

/// From outside, on a frame, in its axes: [moment; force] [N m, N].
struct Wrench {
  Frame frame;
  std::array<double, 6> value;
};

/// Numbers that stand somewhere else.
class Input {
 public:
  template <class Container, class = decltype(std::declval<const Container&>().data())>
  Input(const Container& x) : data_(x.data()), size_(static_cast<std::size_t>(x.size())) {}
  const double* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  const double* data_;
  std::size_t size_;
};

/// Numbers in a workspace, and whether they are an answer.
class Answer {
 public:
  Answer(const double* data, std::size_t size, Status status) : status(status), data_(data), size_(size) {}
  const double* data() const { return data_; }
  std::size_t size() const { return size_; }
  const double* begin() const { return data_; }
  const double* end() const { return data_ + size_; }
  double operator[](std::size_t i) const { return data_[i]; }

  Status status;

 private:
  const double* data_;
  std::size_t size_;
};

/// Where a thread's answers stand, each function's until it is asked again.
class Workspace {
 public:
  double* room(Operation operation, std::size_t size) {
    std::vector<double>& mine = of_[static_cast<std::size_t>(operation)];
    if (mine.size() < size) mine.resize(size);
    return mine.data();
  }

 private:
  std::array<std::vector<double>, operations> of_;
};

/// Of a thin uniform rod between two points of the body.
inline Inertia<double> rod(double mass, const Vec3<double>& a, const Vec3<double>& b) {
  const Sym3<double> aa = symmetric_product(a, a), bb = symmetric_product(b, b), ab = symmetric_product(a, b);
  const auto second = [&](double Sym3<double>::* k) { return mass / 6.0 * (aa.*k + bb.*k + ab.*k); };  // of the Euler tensor
  using S = Sym3<double>;
  const double xx = second(&S::xx), yy = second(&S::yy), zz = second(&S::zz);
  return {mass, (a + b) * (0.5 * mass), {yy + zz, -second(&S::xy), -second(&S::xz), xx + zz, -second(&S::yz), xx + yy}};
}

/// A joint along one axis, between a point of the parent and one of the child, whose axes are parallel at zero.
inline JointDescription joint(JointKind kind, std::string name, std::string parent, std::string child, const Vec3<double>& axis,
                              const Vec3<double>& at_parent = zero3<double>(), const Vec3<double>& at_child = zero3<double>()) {
  JointDescription j{};
  j.name = std::move(name), j.parent = std::move(parent), j.child = std::move(child);
  j.kind = kind, j.axis = axis, j.axis2 = axis, j.nq = j.nv = 1;
  j.at_parent = {Mat3<double>::Identity(), at_parent}, j.at_child = {Mat3<double>::Identity(), at_child};
  for (auto* passive : {&j.armature, &j.damping, &j.friction, &j.stiffness, &j.rest}) passive->assign(1, 0.0);
  return j;
}

/// What a call of an operation looks like, by the words of operation_list.hpp.
struct Signature {
  const char *name, *inputs, *axes;
  unsigned facts;

  constexpr int count(bool optional) const {
    int words = 1, may = 0;
    for (const char* at = inputs; *at; ++at) words += *at == ' ', may += *at == '?';
    return optional ? words : words - may;
  }
  constexpr bool is(fact::Fact f) const { return (facts & f) != 0; }
};
constexpr Signature signature(Operation operation) {
  using namespace fact;
  constexpr Signature all[] = {
#define SARRUS_SIGNATURE(name, inputs, axes, facts) {#name, inputs, axes, facts},
      SARRUS_OPERATIONS(SARRUS_SIGNATURE)
#undef SARRUS_SIGNATURE
  };
  return all[static_cast<int>(operation)];
}

class Robot : public Mechanism {
 public:
  explicit Robot(Description description) : Mechanism(std::move(description)) {
    for (int i = 0; i < operations; ++i) sizes_[i] = sizes(signature(static_cast<Operation>(i)));
  }
  /// The same with other numbers, in microseconds: see Mechanism.
  Robot(const Robot& other, Description changed) : Mechanism(other, std::move(changed)), sizes_(other.sizes_) {}

#define SARRUS_METHOD(name, ...)                                                                    \
  template <class... Arguments> Answer name(Workspace& work, const Arguments&... arguments) const { \
    return ask<Operation::name>(work, arguments...);                                                \
  }                                                                                                 \
  template <class... Arguments> Numbers name(const Arguments&... arguments) const {                 \
    return numbers(Operation::name, [&](Workspace& work) { return name(work, arguments...); });     \
  }
  SARRUS_OPERATIONS(SARRUS_METHOD)
#undef SARRUS_METHOD

  // as they are called in Python, by the metric of the mass matrix
  template <class... Arguments> Answer project_velocity(Workspace& work, const Arguments&... arguments) const {
    return velocity_by_mass(work, arguments...);
  }
  template <class... Arguments> Answer project_configuration(Workspace& work, const Arguments&... arguments) const {
    return configuration_by_mass(work, arguments...);
  }

  /// To be looked up once, before a loop begins; what is asked of it is in its own axes, or in those of the world.
  Frame frame(const std::string& name, ExpressedIn axes = ExpressedIn::frame) const {
    const PlacedFrame* at = find_frame(name);
    if (!at) throw std::invalid_argument("no frame is named '" + name + "'");
    return {at->link, at->body, at->X, axes};
  }

  /// Degrees of freedom, redundant rows, self-stress and singularities at q, which closes the loops (AssemblyError). Where rows of constraints depend on
  /// q, `rows` evaluates them.
  Mobility mobility(const Input& q, const MobilityOptions& options = {}, RowsOfState rows = {}) const {
    return sarrus::mobility(functions(), configuration("mobility", q), options, std::move(rows));
  }
  /// S (nv, nu) of the motors, or of these joints: S u is the generalised force of efforts u.
  Matrix actuation_matrix(const Input& q, const std::optional<Names>& actuated = {}) const {
    return motor_rows(functions(), configuration("actuation_matrix", q), motors(actuated)).transpose();
  }
  /// Orthonormal basis (nu, k) of the efforts that move nothing.
  Matrix internal_efforts(const Input& q, const std::optional<Names>& actuated = {}, const std::optional<double>& time = {},
                          RowsOfState rows = {}) const {
    const StateFunctions of = functions();
    const double* at = configuration("internal_efforts", q);
    return sarrus::internal_efforts(ScaledLoops(of, at, time, std::move(rows)), at, motors(actuated));
  }

  /// The plan stays the caller's, and so do the numbers of its force elements.
  Simulation simulation(const Plan& plan, const double* parameters = nullptr) const {
    return {sarrus_kernel_table()->simulation, tree(), plan, parameters};
  }

 private:
  StateFunctions functions() const { return {*this, *sarrus_kernel_table()}; }
  std::vector<int> motors(const std::optional<Names>& actuated) const {
    return actuated ? joints_by_names(*this, *actuated) : actuated_joints(*this);
  }
  const double* configuration(const char* asked, const Input& q) const {
    if (q.size() != static_cast<std::size_t>(tree().nq))
      throw std::invalid_argument(std::string(asked) + "(q): q has " + std::to_string(q.size()) + " entries; it needs " +
                                  std::to_string(tree().nq));
    return q.data();
  }

  struct Sizes {
    std::array<std::size_t, max_inputs> input;
    std::size_t result;
  };
  /// The arguments of one call, each in its place.
  struct Call {
    const Robot& robot;
    Operation operation;
    const double* in[max_inputs];
    int rows;
    Frame frame;
    Frame* wrench_frame;
    const double** wrench;
    int wrenches;

    void add(const Input& x) {
      if (const std::size_t size = robot.sizes_[static_cast<int>(operation)].input[rows]; x.size() != size)
        robot.refuse(operation, rows, x.size());
      in[rows++] = x.data();
    }
    void add(const Frame& at) { frame = at; }
    void add(const Wrench& w) { wrench_frame[wrenches] = w.frame, wrench[wrenches++] = w.value.data(); }
  };
  template <class X> static constexpr bool is_input = !std::is_same_v<X, Frame> && !std::is_same_v<X, Wrench>;

  template <Operation operation, class... Arguments> Answer ask(Workspace& work, const Arguments&... arguments) const {
    constexpr Signature asked = signature(operation);
    constexpr int rows = (0 + ... + int(is_input<Arguments>)), at = (0 + ... + int(std::is_same_v<Arguments, Frame>));
    constexpr int wrenches = static_cast<int>(sizeof...(Arguments)) - rows - at;
    static_assert(rows >= asked.count(false) && rows <= asked.count(true), "the inputs are told in kernels/operation_list.hpp");
    static_assert(at == int(asked.is(fact::at_frame)), "it takes one frame, or none");
    static_assert(wrenches == 0 || asked.is(fact::loads), "it takes no wrenches");
    Frame wrench_frame[wrenches + 1];
    const double* wrench[wrenches + 1];
    Call call{*this, operation, {}, 0, {}, wrench_frame, wrench, 0};
    (call.add(arguments), ...);
    const std::size_t size = sizes_[static_cast<int>(operation)].result;
    double* out = work.room(operation, size);
    for (const double* in : call.in)
      if (in == out)
        throw std::invalid_argument(std::string(asked.name) + "() is given its own answer, which it would write over");
    const Parameters parameters = {call.frame, wrenches, wrench_frame, true};
    const double status = sarrus_kernel_table()->one[static_cast<int>(operation)](tree(), parameters, call.in, wrench, out);
    return {out, size, static_cast<Status>(static_cast<int>(status))};
  }

  template <class F> Numbers numbers(Operation operation, const F& ask) const {
    Workspace work;
    const Answer answer = ask(work);
    if (answer.status != fine)
      throw NoAnswer(std::string(signature(operation).name) + "() has no answer in this state: status " +
                     std::to_string(static_cast<int>(answer.status)));
    return {answer.begin(), answer.end()};
  }

  static std::vector<std::string> names(const Signature& s) {
    std::vector<std::string> all(1);
    for (const char* at = s.inputs; *at; ++at) {
      if (*at == ' ')
        all.emplace_back();
      else if (*at != '?')
        all.back() += *at;
    }
    return all;
  }
  Sizes sizes(const Signature& s) const {
    Sizes all{{}, 1};
    int k = 0;
    for (const std::string& name : names(s)) all.input[k++] = static_cast<std::size_t>(size_of_input(name, tree()));
    for (const char* axis = s.axes; *axis; ++axis) all.result *= static_cast<std::size_t>(size_of_axis(*axis, tree()));
    return all;
  }
  [[noreturn]] void refuse(Operation operation, int input, std::size_t size) const {
    const Signature s = signature(operation);
    throw std::invalid_argument(std::string(s.name) + "(" + s.inputs + "): " + names(s)[input] + " has " + std::to_string(size) +
                                " entries; it needs " + std::to_string(sizes_[static_cast<int>(operation)].input[input]));
  }

  std::array<Sizes, operations> sizes_;
};

}  // namespace sarrus
