// A mechanism in two forms: as the user describes it (a graph of bodies and joints), and as the kernels read it (a tree with its constants). A
// Mechanism does not change after construction, so any number of threads may use it. Its structure does not depend on parameters. It is computed
// first, and copies with different parameters share it. Then the parameters are converted (bake.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "constraint_list.hpp"
#include "elimination.hpp"
#include "errors.hpp"
#include "substructures.hpp"

namespace sarrus {

struct BodyDescription {
  std::string name;
  Inertia<double> inertia;  // inertia about the origin of the body's frame, in its axes
};

/// List of one number for each velocity of a joint, stored inline so that descriptions are copied in microseconds.
class PerVelocity {
 public:
  PerVelocity() = default;
  PerVelocity(std::initializer_list<double> x) { assign(x.begin(), x.end()); }
  template <class Iterator> void assign(Iterator first, Iterator last) {
    resize(static_cast<std::size_t>(std::distance(first, last)));
    std::copy(first, last, number_);
  }
  void assign(std::size_t size, double x) { resize(size), std::fill_n(number_, size, x); }
  void resize(std::size_t size) {
    if (size > most)
      throw ModelError("a parameter of a joint has " + std::to_string(size) + " values; expected one per velocity, at most six");
    size_ = size;
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  double& operator[](std::size_t k) { return number_[k]; }
  const double& operator[](std::size_t k) const { return number_[k]; }
  double* begin() { return number_; }
  double* end() { return number_ + size_; }
  const double* begin() const { return number_; }
  const double* end() const { return number_ + size_; }

 private:
  static constexpr std::size_t most = 6;
  std::size_t size_ = 0;
  double number_[most] = {};
};

struct JointDescription {
  std::string name, parent, child;
  JointKind kind;
  Vec3<double> axis, axis2;  // unit vectors, in the joint's frame
  JointConstants constants;  // only the fields that the kind of joint uses are set
  Transform<double> at_parent, at_child;  // the joint's frame in each body
  bool actuated;
  PerVelocity armature, damping, friction, stiffness, rest;
  PerVelocity quadratic_stiffness, cubic_stiffness, quadratic_damping, cubic_damping;
  int nq, nv;
  bool keep_in_tree, close_loop;  // hints of the caller: the joint must be a tree joint; the joint must be a loop joint
  // empty, or six time functions (rx .. tz) of a gimbal that moves the joint's frame on the parent
  std::vector<std::optional<Law>> laws;
};

/// A constraint other than a joint, of any type: between two bodies, or between coordinates.
struct ConstraintDescription {
  struct Coordinate {
    std::string joint;
    int index;  // -1: all velocities of the joint
  };
  std::string name;
  AnyConstraint kind;
  std::string parent, child;
  // the constraint's frame in each body; its wrench is reported in the axes of the child's
  Transform<double> at_parent, at_child;
  std::vector<Coordinate> coordinates;
  /// Target::frame: each call prescribes a point or a pose of the child's frame, and `kind` is a joint of the corresponding type from the ground.
  Target target = Target::none;
  bool in_world = false;  // Target::frame: the rows are along the world's axes instead of the frame's
  std::string joint;  // Target::coordinates: name of the loop joint whose coordinates each call prescribes
};

struct FrameDescription {
  std::string name, body;
  Transform<double> X;
};

struct SpringDescription {
  std::string name, body[2];
  Vec3<double> point[2];
  double stiffness, rest_length, damping;
  NonlinearTerms nonlinear;
};

struct Description {
  std::string name;
  Vec3<double> gravity;
  std::vector<BodyDescription> bodies;
  std::vector<JointDescription> joints;
  std::vector<FrameDescription> frames;
  std::vector<ConstraintDescription> constraints;
  std::vector<SpringDescription> springs;
  double length = 0.0;  // displacement that is comparable to a rotation of one radian [m]; 0: the mean size of the bodies
  // largest number of bodies per substructure; 0: the mechanism is not cut; automatic: the number of least cost
  int substructures = automatic;
  static constexpr int automatic = -1;
  std::function<void()> check_interrupt;  // called repeatedly while a large mechanism is built; an exception aborts the build
};

class Variants;  // variants.hpp

class Mechanism {
 public:
  /// Raises ModelError if the description is invalid.
  explicit Mechanism(Description description);
  /// Copy with different parameters. Everything else is shared with the original, so the only cost is the conversion of parameters. Raises ModelError
  /// if the structure differs: in items that are not parameters, in the decisions about cuts, or in the set of loop joints with armature.
  Mechanism(const Mechanism& other, Description changed);
  /// Mechanism with variants: row i of a batch belongs to the variant variant_indices[i]. Functions that do not support variants use the parameters
  /// of `other`.
  Mechanism(const Mechanism& other, std::shared_ptr<const Variants> variants, std::vector<std::int64_t> variant_indices)
      : Mechanism(other, other.description_) {
    variants_ = std::move(variants), variant_indices_ = std::move(variant_indices);
  }
  Mechanism& operator=(const Mechanism&) = delete;

  const std::shared_ptr<const Variants>& variants() const { return variants_; }  // null: there are no variants
  const std::vector<std::int64_t>& variant_indices() const { return variant_indices_; }
  const Tree& tree() const { return tree_; }
  const Description& description() const { return description_; }

  using PlacedFrame = sarrus::PlacedFrame;
  /// Find a frame by name: a frame of the description, a body's frame, or NAME.parent and NAME.child, the frames of joint NAME on its bodies. Names
  /// of frames and bodies have precedence. Null: there is no such frame.
  const PlacedFrame* find_frame(const std::string& name) const {
    const auto at = frame_of_->find(name);
    return at == frame_of_->end() ? nullptr : &frames_[at->second];
  }
  /// Return the index of a frame among all frames.
  int number_of(const PlacedFrame& frame) const { return static_cast<int>(&frame - frames_.data()); }
  const PlacedFrame& placed_frame(const std::string& name) const { return frames_[frame_of_->at(name)]; }
  std::vector<std::string> frame_names() const;

  struct PlacedJoint {
    int iq, iv, nq, nv;
    bool closes_a_loop, reversed;
    int body;  // the joint's successor; -1 for a loop joint
    int constraint;  // index of its constraint if it is a loop joint; else -1
    int ends[2];  // its parent body and its child body
  };
  const std::vector<PlacedJoint>& joints() const { return joints_; }  // in the order of the description
  const std::vector<int>& quaternions() const { return quaternions_; }  // index in q at which each quaternion begins
  /// Return, for the loop joints and then the other constraints of the description, the index of each in Loops::constraint.
  const std::vector<int>& constraints() const { return described_constraints_; }
  const std::string& constraint_name(int i) const { return constraint_names_[i]; }
  // unknown of each effort: velocity k < nv, or nv + a row index
  const std::vector<int>& actuators() const { return actuators_; }
  /// Return the number of multiplications of one factorisation in joint coordinates (0: it is more than twice as large as with substructures), and
  /// with substructures (0: no cut is possible).
  double operations_of_joints() const { return dynamics_ && dynamics_->complete() ? dynamics_->operations() : 0.0; }
  double operations_of_substructures() const { return operations_of_substructures_; }
  double mass() const { return mass_; }
  const std::vector<std::string>& massless() const { return massless_; }  // joints whose subtree has no inertia along them
  const std::vector<std::string>& idle() const { return idle_; }  // those massless() joints that no loop constrains
  const std::string& tie() const { return tie_; }  // the reason why the mechanism does not float; empty if it floats

 private:
  friend class Variants;
  Mechanism(const Mechanism&) = default;

  // computation of the structure, which does not depend on parameters
  void span(const Description&);
  void lay_out(const Description&);
  void join(const JointDescription&, const PlacedJoint&, Body&);
  void name_frames(const Description&);
  void link_columns();
  void attach_springs(const Description&);
  void close(const Description&);
  void add_constraints(const Description&);
  void add_motors(const Description&);
  void order_elimination(const Description&);
  std::string describe_tie(const Description&) const;
  void place_between(const std::string& parent, const std::string& child, Constraint& c);
  void add(Constraint c, int source);
  Constraint closing_joint(const Description&, int joint);
  void add_motion(const Description&, int joint, const Constraint&);
  Constraint other_constraint(const Description&, const ConstraintDescription&);
  int prescribed_joint(const Description&, const ConstraintDescription&) const;
  Constraint prescribed_motion(int joint);
  void along(const Description&, const ConstraintDescription&, Constraint& c);
  void point();

  // conversion of the parameters, after the structure is known: bake.cpp
  void bake();
  void bake_bodies();
  void bake_frames();
  void bake_terms();
  void bake_springs();
  void bake_closing_joint(int joint);
  void bake_constraints();
  void bake_motors();
  double characteristic_length() const;
  void weigh();
  void find_idle();
  void require_to_vary_from(const Mechanism& other) const;
  std::vector<char> decisions() const;
  void require_same_decisions(const std::vector<char>& before);

  Description description_;
  std::vector<int> order_;  // bodies of the description in depth-first order; the first one is the ground (-1)
  std::vector<int> carrier_;  // for each body of the description, its joint towards the ground
  std::vector<Link> links_;
  std::vector<PassiveTerms> passive_terms_;
  std::vector<Body> bodies_;
  std::vector<PointSpring> springs_;
  std::vector<LoopMotion> loop_motions_;
  std::vector<int> angles_, column_link_, column_parent_, column_depth_, quaternions_;
  std::vector<PlacedJoint> joints_;
  std::vector<std::string> constraint_names_, massless_, idle_;
  std::vector<double> unit_, per_unit_square_, motor_unit_;
  std::vector<char> lacks_inertia_;
  std::string tie_;
  std::shared_ptr<const std::unordered_map<std::string, int>> frame_of_;
  std::vector<PlacedFrame> frames_;  // the ground, then the bodies and frames of the description, then the joints' frames
  std::vector<std::pair<int, int>> joint_frames_;  // for each of the joints' frames, the joint and its end (0: parent, 1: child)
  double mass_ = 0.0, operations_of_substructures_ = 0.0;
  ConstraintList constraints_;
  // for each constraint: index of the joint from which it was made, or -1 - (index of the constraint in the description)
  std::vector<int> source_;
  std::vector<Constraint> motions_;
  std::vector<double> driven_, rotor_;
  std::vector<int> described_constraints_, actuators_, mass_first_, chain_;
  std::shared_ptr<const EliminationPlan> dynamics_, statics_;
  std::shared_ptr<SubstructuredMechanism> pieces_;
  bool may_be_cut_ = false;  // true if the builder has compared cuts into substructures
  std::vector<char> decisions_;
  std::shared_ptr<const Variants> variants_;
  std::vector<std::int64_t> variant_indices_;
  Tree tree_{};
};

}  // namespace sarrus
