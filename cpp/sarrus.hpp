// C++ interface of sarrus. A Robot is created by a Builder, or read from a file. Its methods are the functions of a state, with the same names as in
// Python.
//
//   const sarrus::Robot robot = sarrus::load("robot.json");    throws ModelError; or builder.build(): see model/builder.hpp
//   robot.joint("crank").v_start                         parts by name; throws NameNotFoundError
//   sarrus::Workspace work;                              one per thread
//   const sarrus::Frame tool = robot.frame("tool");
//   const sarrus::Answer a = robot.forward_dynamics(work, q, v, tau);
//   robot.jacobian(work, q, tool)                        inputs in the order of kernels/operation_list.hpp, optional ones omitted at the end;
//   robot.inverse_dynamics(work, q, v, a)                then the frame if the function needs one, and any number of wrenches
//   robot.mobility(q).degrees_of_freedom                 properties of a configuration are structs: mobility/mobility.hpp
//   robot.joint_wrenches(q, v, a).wrenches               wrenches of all joints, by name: mobility/joint_wrenches.hpp
//   robot.force_elements({{"PID", {{"joint", "crank"}, {"proportional", 40.0}}}})   by names: reading/elements.hpp; plan.force_elements = its all()
//   robot.simulation(plan).run_fixed(clock, row)         from row = robot.simulation(plan).begin(state): see simulation/driver.hpp
//
// Inputs may have any type with data() and size(): std::vector, std::array, Eigen's vectors, an Answer. Matrices are row-major. The number of inputs
// is checked at compile time, their lengths at every call. An Answer refers to the workspace, and is valid until the same function is called again.
// Only the first call of a function allocates memory in the workspace, so the functions are suitable for control loops. Without a workspace the same
// functions return Numbers, and throw if there is no result. A Robot is constant, so any number of threads may use it.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "control/path_timing.hpp"
#include "elements/list.hpp"
#include "kernels/kernels.hpp"
#include "kernels/operation_sizes.hpp"
#include "mechanism/mechanism.hpp"
#include "mobility/actuation.hpp"
#include "mobility/explanation.hpp"
#include "mobility/free_floating.hpp"
#include "mobility/free_motions.hpp"
#include "mobility/joint_wrenches.hpp"
#include "mobility/mobility.hpp"
#include "model/builder.hpp"
#include "model/text.hpp"
#include "position/loosening.hpp"
#include "position/positions.hpp"
#include "position/random.hpp"
#include "position/waypoint_path.hpp"
#include "reading/tasks.hpp"
#include "simulation/contact_history.hpp"
#include "simulation/driver.hpp"
#include "simulation/events.hpp"
#include "simulation/timing.hpp"

extern "C" const sarrus::KernelTable* sarrus_kernel_table();

namespace sarrus {

using Numbers = std::vector<double>;

/// Reference to numbers of the caller.
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

/// Values in a workspace, and the status of the result.
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

/// Memory for the results of a thread's calls. A result is valid until the next call of the same function.
class Workspace {
 public:
  double* room(Operation operation, std::size_t size) {
    std::vector<double>& mine = results_[static_cast<std::size_t>(operation)];
    if (mine.size() < size) mine.resize(size);
    return mine.data();
  }

 private:
  std::array<std::vector<double>, operations> results_;
};

/// Signature of an operation, as operation_list.hpp defines it.
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

/// A joint: its type, and the indices of its coordinates and velocities in q and v. A loop joint has no coordinates in q, so its indices are not
/// valid.
struct Joint {
  const model::Joint& written;
  int q_start, nq, v_start, nv;
  bool closes_loop;
};

class Robot : public Mechanism {
 public:
  explicit Robot(const Builder& builder)
      : Mechanism(model::core_description(builder.complete())),
        written_(std::make_shared<const model::Description>(builder.description())) {
    for (int i = 0; i < operations; ++i) sizes_[i] = sizes(signature(static_cast<Operation>(i)));
    check_coordinates("home", written_->home);
    for (const auto& [name, coordinates] : written_->configurations)
      check_coordinates("configuration '" + name + "'", coordinates);
    positions_ = std::make_unique<const Positions>(position_model());
  }
  /// Return a robot with different parameters; this takes microseconds. The keywords are those of Mechanism.
  Robot(const Robot& other, const Builder& changed)
      : Mechanism(other, model::core_description(changed.complete())),
        sizes_(other.sizes_),
        written_(std::make_shared<const model::Description>(changed.description())),
        positions_(std::make_unique<const Positions>(position_model())) {}

  /// Return the description as plain data, with names.
  const model::Description& written() const { return *written_; }
  const std::string& name() const { return written_->name; }
  /// Return a warning for each entry of a file or of the description that has no effect.
  std::vector<std::string> warnings() const {
    std::vector<std::string> all = written_->warnings;
    for (const std::string& joint : tree().loops.rows > 0 ? idle() : massless())
      all.push_back("no body has inertia along joint '" + joint + "': forward dynamics has no result");
    for (std::string& sentence : model::doubtful(*written_)) all.push_back(std::move(sentence));
    return all;
  }

  Joint joint(const std::string& name) const {
    const std::size_t k = model::joint_index(*written_, name);
    const PlacedJoint& at = joints()[k];
    return {written_->joints[k], at.iq, at.nq, at.iv, at.nv, at.closes_a_loop};
  }
  /// Return the names of the joints that motors drive.
  std::vector<std::string> actuated() const {
    std::vector<std::string> names;
    for (const model::Joint& joint : written_->joints)
      if (joint.actuated) names.push_back(joint.name);
    return names;
  }
  /// Return the neutral configuration, except for the given coordinates of joints. Motors of transmissions follow their joints.
  Numbers configuration(const model::JointCoordinates& coordinates = {}) const {
    Numbers q(static_cast<std::size_t>(tree().nq), 0.0);
    for (const int k : quaternions()) q[static_cast<std::size_t>(k) + 3] = 1.0;
    for (const auto& [name, numbers] : model::with_motors(*written_, coordinates)) {
      const Joint at = joint(name);
      if (at.closes_loop || static_cast<int>(numbers.size()) != at.nq)
        throw std::invalid_argument("joint '" + name + "' has " + std::to_string(at.closes_loop ? 0 : at.nq) +
                                    " coordinates in q; got " + std::to_string(numbers.size()));
      std::copy(numbers.begin(), numbers.end(), q.begin() + at.q_start);
    }
    return q;
  }
  Numbers home() const { return configuration(written_->home); }
  /// Return the configuration with this name.
  Numbers configuration(const std::string& name) const { return configuration(model::named_configuration(*written_, name)); }

#define SARRUS_METHOD(name, ...)                                                                    \
  template <class... Arguments> Answer name(Workspace& work, const Arguments&... arguments) const { \
    return ask<Operation::name>(work, arguments...);                                                \
  }                                                                                                 \
  template <class... Arguments> Numbers name(const Arguments&... arguments) const {                 \
    return numbers<Operation::name>(arguments...);                                                  \
  }
  SARRUS_OPERATIONS(SARRUS_METHOD)
#undef SARRUS_METHOD

  // functions with the same names as in Python, in the metric of the mass matrix
  template <class... Arguments> Answer project_velocity(Workspace& work, const Arguments&... arguments) const {
    return velocity_by_mass(work, arguments...);
  }
  template <class... Arguments> Answer project_configuration(Workspace& work, const Arguments&... arguments) const {
    return configuration_by_mass(work, arguments...);
  }

  /// Return a frame, for use in later calls. Results for the frame are in its own axes, or in the world's.
  Frame frame(const std::string& name, ExpressedIn axes = ExpressedIn::frame) const {
    const PlacedFrame* at = find_frame(name);
    if (!at) no_such_name("frame", name, frame_names());
    return {at->link, at->body, at->X, axes};
  }

  /// Compute degrees of freedom, redundant rows, self-stress and singularities at q. Raises AssemblyError if q leaves loops open. If rows of
  /// constraints depend on q, `rows` evaluates them.
  Mobility mobility(const Input& q, const MobilityOptions& options = {}, RowsOfState rows = {}) const {
    return sarrus::mobility(functions(), configuration("mobility", q), options, std::move(rows));
  }
  /// Compute the motion space phi of a joint in its frame on its successor, its complement, and the dual basis psi.
  JointBases joint_bases(const Input& q, const std::string& joint) const {
    const Joint at = this->joint(joint);
    if (at.closes_loop) throw ModelError("joint_bases: '" + joint + "' closes a loop; expected a joint of the tree");
    RowMajor all(6, tree().nv);
    functions().evaluate(Operation::motion_space, {configuration("joint_bases", q)}, all.data());
    return sarrus::joint_bases(all.middleCols(at.v_start, at.nv));
  }
  /// Compute a basis of the velocities that the constraints allow, and the pseudo-inverse of their Jacobian (mobility/free_motions.hpp).
  FreeMotions free_motions(const Input& q, const std::optional<double>& time = {}, RowsOfState rows = {}) const {
    const StateFunctions of = functions();
    const double* at = configuration("free_motions", q);
    const ScaledLoops loops(of, at, time, std::move(rows));
    const Matrix J =
        loops.row_scale.cwiseInverse().asDiagonal() * loops.jacobian(at) * loops.column_scale.cwiseInverse().asDiagonal();
    return sarrus::free_motions(J, loops.column_scale, loops.row_scale);
  }
  /// Compute S (nv, nu) for the mechanism's motors, or for motors in these joints: S u is the generalised force of the efforts u.
  Matrix actuation_matrix(const Input& q, const std::optional<Names>& actuated = {}) const {
    return motor_rows(functions(), configuration("actuation_matrix", q), motors(actuated)).transpose();
  }
  /// Compute an orthonormal basis (nu, k) of the efforts that cause no motion.
  Matrix internal_efforts(const Input& q, const std::optional<Names>& actuated = {}, const std::optional<double>& time = {},
                          RowsOfState rows = {}) const {
    const StateFunctions of = functions();
    const double* at = configuration("internal_efforts", q);
    return sarrus::internal_efforts(ScaledLoops(of, at, time, std::move(rows)), at, motors(actuated));
  }

  // Configurations and velocities that loops allow; position/positions.hpp documents these functions. The first call with new joints and frames also
  // prepares their equations.

  /// Compute a configuration that closes the loops, near a given one and on its branch. `fixed` joints have the given coordinates.
  Assembled assemble(const AssemblyStart& near = {}, const JointNumbersByName& fixed = {},
                     const AssemblyOptions& options = {}) const {
    return positions_->assemble(near, fixed, options);
  }
  /// Compute a configuration that closes the loops with frames at their targets: points [m], or rows of [R p]; NaN marks free components.
  Assembled inverse_kinematics(const FrameNumbersByName& frames, const AssemblyStart& near = {},
                               const JointNumbersByName& fixed = {}, const AssemblyOptions& options = {}) const {
    return positions_->inverse_kinematics(frames, near, fixed, options);
  }
  /// Apply assemble() and inverse_kinematics() to many states at once in lanes. A joint has one value for each state, or one for all states; a target
  /// has one for each state. A state without a solution is reported by its status instead of an exception.
  AssembledStates assemble_many(const AssemblyStarts& near, const JointNumbersByName& fixed, const BatchOptions& options) const {
    return positions_->inverse_kinematics_many({}, near, fixed, options);
  }
  AssembledStates inverse_kinematics_many(const FrameNumbersByName& frames, const AssemblyStarts& near,
                                          const JointNumbersByName& fixed, const BatchOptions& options) const {
    return positions_->inverse_kinematics_many(frames, near, fixed, options);
  }
  /// Search for all assembly modes (configurations) with these joints fixed.
  std::vector<Vector> assembly_modes(const JointNumbersByName& fixed, const std::optional<double>& time = {}) const {
    return positions_->assembly_modes(fixed, time);
  }
  /// Compute closed configurations (n, nq) along prescribed inputs, on one branch.
  RowMajor follow(const PathInputs& inputs, const AssemblyStart& near = {}, const PathOptions& options = {}) const {
    return positions_->follow(inputs, near, options);
  }
  /// Compute a path with continuous velocity and acceleration through waypoints q (n, nq) at times (n) [s]. `ends`: velocities (2, nv) at the first
  /// and the last waypoint; default: at rest. See position/waypoint_path.hpp.
  Path path_through(const Vector& times, const RowMajor& q, const std::optional<RowMajor>& ends = {}) const {
    return Path::through(functions(), times, q, ends);
  }
  /// Draw random configurations (n, nq) within joint limits, with closed loops if `closed`. The same seed yields other configurations than in Python,
  /// which uses NumPy's generators.
  RowMajor random(int count, RandomNumbers& numbers, bool closed = false) const {
    const bool open = !closed || constraints().empty();
    const auto draw = [&](int n) { return open_configurations(positions_->model(), n, numbers, open ? 1.0 : tree().length); };
    return open ? draw(count) : closed_configurations(*positions_, draw(count), draw);
  }
  /// Return the mechanism without redundant constraint rows, in which loop joints have more degrees of freedom. Its last warnings list the changes;
  /// there are none if no row is redundant. See position/loosening.hpp.
  Robot without_redundant_constraints(const std::optional<Vector>& q = {}, const LooseningOptions& options = {}) const {
    const Loosened loose = sarrus::without_redundant_constraints(positions_->model(), written_->joints, q, options);
    model::Description d = *written_;
    if (!loose.warnings.empty()) d.joints.clear();
    for (const std::optional<model::Joint>& joint : loose.joints)
      if (joint) d.joints.push_back(*joint);
    d.warnings.insert(d.warnings.end(), loose.warnings.begin(), loose.warnings.end());
    return Robot(Builder(d));
  }
  /// Compute the velocity that satisfies the constraints, for given velocities of some joints and frames, in the frames' axes or the world's.
  Numbers complete_velocity(const Input& q, const JointNumbersByName& joints, const FrameNumbersByName& frames = {},
                            const std::optional<double>& time = {}, ExpressedIn axes = ExpressedIn::frame) const {
    return numbers(positions_->complete_velocity(vector(q), joints, frames, time, axes));
  }
  /// Compute the accelerations that satisfy the constraints, for given accelerations of some joints and frames.
  Numbers complete_acceleration(const Input& q, const Input& v, const JointNumbersByName& joints,
                                const FrameNumbersByName& frames = {}, const std::optional<double>& time = {},
                                ExpressedIn axes = ExpressedIn::frame) const {
    return numbers(positions_->complete_acceleration(vector(q), vector(v), joints, frames, time, axes));
  }
  /// Compute the wrenches of all joints and the efforts of motors, in one motion or several: q (states, nq), v and a (states, nv). Throws NoAnswer if
  /// a state has no result. If rows of constraints depend on q, `rows` evaluates them.
  JointWrenches joint_wrenches(const Input& q, const Input& v, const Input& a, const JointWrenchOptions& options = {},
                               const RowsOfState& rows = {}) const {
    const std::size_t states = states_of("joint_wrenches", q, v, a, options.multipliers);
    JointWrenches result =
        sarrus::joint_wrenches(functions(), static_cast<std::int64_t>(states), q.data(), v.data(), a.data(), options, rows);
    if (states == 1 && result.status[0] != fine) throw NoAnswer(no_answer_text("joint_wrenches", result.status[0]));
    return result;
  }
  /// Return an object that computes motions of a floating mechanism: resolved rates and paths (mobility/free_floating.hpp). Raises ModelError if the
  /// mechanism does not float.
  FloatingBase floating_base(RowsOfState rows = {}) const { return {functions(), std::move(rows)}; }
  /// Return the indeterminate components of reactions, by the names of joints and of other constraints.
  Named<Names> indeterminate_reactions(const Input& q, const std::optional<double>& time = {}, RowsOfState rows = {}) const {
    return sarrus::indeterminate_reactions(functions(), configuration("indeterminate_reactions", q), time, std::move(rows));
  }

  /// Return force elements from kinds and named arguments, which are documented in Python's sarrus.control. They must outlive all simulations that
  /// use them.
  ActingElements force_elements(const std::vector<Element>& elements, const ElementRun& run = {}) const {
    return ActingElements(element_model(), elements, run);
  }

  /// Return a controller of tasks, contacts and limits from named arguments, which are documented in Python's TaskControl. If no actuated joints are
  /// named, those of the description are used.
  NamedTaskControl task_control(TaskArguments arguments) const {
    if (arguments.actuated.empty()) arguments.actuated = actuated();
    return NamedTaskControl(element_model(), arguments);
  }

  /// Return a simulation. The caller owns the plan and the parameters of its force elements; they must outlive the simulation.
  Simulation simulation(const Plan& plan, const double* parameters = nullptr) const {
    return {sarrus_kernel_table()->simulation, tree(), plan, parameters};
  }

 private:
  StateFunctions functions() const { return {*this, *sarrus_kernel_table()}; }
  std::vector<int> motors(const std::optional<Names>& actuated) const {
    return actuated ? joints_by_names(*this, *actuated) : actuated_joints(*this);
  }
  const double* configuration(const char* function, const Input& q) const {
    if (q.size() != static_cast<std::size_t>(tree().nq))
      throw std::invalid_argument(std::string(function) + "(q): q has " + std::to_string(q.size()) + " entries; it needs " +
                                  std::to_string(tree().nq));
    return q.data();
  }
  static std::string no_answer_text(const char* function, int status) {
    return std::string(function) + "() has no result in this state: " + meaning(status);
  }
  /// Return the number of states. Throws std::invalid_argument if the inputs have different numbers of states.
  std::size_t states_of(const char* function, const Input& q, const Input& v, const Input& a, const Input& multipliers) const {
    const std::size_t nv = static_cast<std::size_t>(tree().nv), states = nv ? v.size() / nv : 1;
    const auto check = [&](const char* name, const Input& x, int size) {
      if (x.size() != states * static_cast<std::size_t>(size))
        throw std::invalid_argument(std::string(function) + "(q, v, a): " + name + " has " + std::to_string(x.size()) +
                                    " entries; it needs " + std::to_string(size) + " for each of " + std::to_string(states) +
                                    " states");
    };
    check("q", q, tree().nq), check("v", v, tree().nv), check("a", a, tree().nv);
    if (multipliers.size()) check("multipliers", multipliers, tree().loops.rows);
    return states;
  }
  void check_coordinates(const std::string& of, const model::JointCoordinates& coordinates) const {
    for (const auto& [name, numbers] : coordinates)
      if (joint(name).closes_loop)
        throw ModelError(of + " gives joint '" + name +
                         "', which closes a loop and so has no coordinates: leave it out, or add it with tree=True");
  }

  struct Sizes {
    std::array<std::size_t, max_inputs> input;
    std::size_t result;
  };
  /// Arguments of one call, in the order of the operation's inputs.
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
    constexpr Signature signature_ = signature(operation);
    constexpr int rows = (0 + ... + int(is_input<Arguments>)), at = (0 + ... + int(std::is_same_v<Arguments, Frame>));
    constexpr int wrenches = static_cast<int>(sizeof...(Arguments)) - rows - at;
    static_assert(rows >= signature_.count(false) && rows <= signature_.count(true),
                  "wrong number of inputs: see kernels/operation_list.hpp");
    static_assert(at == int(signature_.is(fact::at_frame)), "this function needs one frame, or no frame");
    static_assert(wrenches == 0 || signature_.is(fact::loads), "this function has no wrenches");
    Frame wrench_frame[wrenches + 1];
    const double* wrench[wrenches + 1];
    Call call{*this, operation, {}, 0, {}, wrench_frame, wrench, 0};
    (call.add(arguments), ...);
    const std::size_t size = sizes_[static_cast<int>(operation)].result;
    double* out = work.room(operation, size);
    for (const double* in : call.in)
      if (size > 0 && in == out)
        throw std::invalid_argument(
            std::string(signature_.name) +
            "(): an input is the previous result of this function, which the call would overwrite: copy the result first");
    const Parameters parameters = {call.frame, wrenches, wrench_frame, true};
    const double status = sarrus_kernel_table()->single[static_cast<int>(operation)](tree(), parameters, call.in, wrench, out);
    return {out, size, static_cast<Status>(static_cast<int>(status))};
  }

  template <Operation operation, class... Arguments> Numbers numbers(const Arguments&... arguments) const {
    Workspace work;
    const Answer answer = ask<operation>(work, arguments...);
    if (answer.status == fine) return {answer.begin(), answer.end()};
    std::vector<const double*> inputs;
    const auto add = [&](const auto& x) {
      if constexpr (is_input<std::decay_t<decltype(x)>>) inputs.push_back(Input(x).data());
    };
    (add(arguments), ...);
    if constexpr (operation == Operation::actuator_efforts && !(... || std::is_same_v<Arguments, Wrench>))
      if (answer.status == inconsistent_constraints) {
        Numbers force(static_cast<std::size_t>(tree().nv));
        functions().evaluate(Operation::inverse_dynamics, {inputs[0], inputs[1], inputs[2]}, force.data());
        const double* time = inputs.size() > 3 ? inputs[3] : nullptr;
        const double* values = inputs.size() > 4 ? inputs[4] : nullptr;
        raise_not_realizable(functions(), {inputs[0], inputs[1], inputs[2], nullptr, nullptr, time, values}, force.data(), false);
      }
    throw NoAnswer(why_no_answer(signature(operation), answer, inputs));
  }
  /// Return the reason of a status, with the same messages as in Python.
  std::string why_no_answer(const Signature& s, const Answer& answer, const std::vector<const double*>& inputs) const {
    StateInputs in;
    const std::vector<std::string> all = names(s);
    for (std::size_t k = 0; k < inputs.size(); ++k)
      for (const auto& [name, input] : {std::pair<const char*, const double**>{"q", &in.q},
                                        {"v", &in.v},
                                        {"a", &in.a},
                                        {"weight", &in.weight},
                                        {"rates", &in.rates},
                                        {"time", &in.time},
                                        {"pfaffian_values", &in.pfaffian_values}})
        if (all[k] == name) *input = inputs[k];
    std::string function = s.name;
    for (const auto& [name, kind] : {std::pair<const char*, const char*>{"project_velocity", "velocity_by_mass"},
                                     {"project_velocity", "velocity_plain"},
                                     {"project_configuration", "configuration_by_mass"},
                                     {"project_configuration", "configuration_plain"},
                                     {"impact", "velocity_jump"}})
      if (function == kind) function = name;
    const bool closes = s.is(fact::closes_loops), on_loops = s.is(fact::on_loops) && tree().loops.rows > 0;
    const bool explained = answer.status == off_loops ? in.v != nullptr
                           : answer.status == inconsistent_constraints
                               ? function == "least_motion" || function == "impact" || function == "project_velocity" ||
                                     function == "forward_dynamics" || function == "constrained_motion"
                               : answer.status == no_answer && (closes || on_loops);
    if (!explained) return no_answer_text(s.name, answer.status);
    return explanation(functions(), function, answer.status, in, closes ? answer.data() : nullptr);
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

  static Vector vector(const Input& x) { return Eigen::Map<const Vector>(x.data(), static_cast<Eigen::Index>(x.size())); }
  static Numbers numbers(const Vector& x) { return {x.begin(), x.end()}; }
  ElementModel element_model() const {
    return {functions(),
            [this]() -> const Positions& { return *positions_; },
            [this](int joint) -> const model::JointType& { return written_->joints[static_cast<std::size_t>(joint)].joint; },
            {}};
  }
  PositionModel position_model() const {
    PositionModel facts{*this, *sarrus_kernel_table(), {}, {}, {}, {}};
    for (const model::Joint& joint : written_->joints)
      facts.limits.push_back(joint.joint.limits ? JointRange{joint.joint.limits->first, joint.joint.limits->second}
                                                : JointRange{});
    if (!written_->home.empty() || !model::motors_of(*written_).empty()) facts.home = vector(home());
    return facts;
  }

  std::array<Sizes, operations> sizes_;
  std::shared_ptr<const model::Description> written_;
  std::unique_ptr<const Positions> positions_;
};

inline Robot model::Builder::build() const { return Robot(*this); }
/// Read a mechanism from a JSON file in the format of sarrus.
inline Robot load(const std::string& path) { return load_builder(path).build(); }

}  // namespace sarrus
