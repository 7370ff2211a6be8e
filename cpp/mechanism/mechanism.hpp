// A mechanism as a user describes it (a graph of bodies and joints), and what the kernels make of it (a tree with its constants).
// A Mechanism does not change once it is built and may be used by any number of threads.
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "constraint_list.hpp"
#include "elimination.hpp"
#include "substructures.hpp"

namespace sarrus {

/// The description is wrong; the message names the part.
struct ModelError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

struct BodyDescription {
  std::string name;
  Inertia<double> inertia;  // about the body frame's origin, in its axes
};

struct JointDescription {
  std::string name, parent, child;
  JointKind kind;
  Vec3<double> axis, axis2;  // unit vectors, in the joint's frame
  JointConstants constants;  // those of its fields are set
  Transform<double> at_parent, at_child;  // the joint's frame in either body
  bool actuated;
  std::vector<double> armature, damping, friction, stiffness, rest;  // per velocity
  int nq, nv;
  bool keep_in_tree, close_loop;  // hints
  std::vector<std::optional<Law>> laws;  // none, or six: its frame on the parent is carried along by a gimbal
};

/// A constraint that is no joint, between two bodies or between coordinates: its kind tells which.
struct ConstraintDescription {
  struct Coordinate {
    std::string joint;
    int index;  // -1: all velocities of the joint
  };
  std::string name;
  AnyConstraint kind;
  std::string parent, child;
  Transform<double> at_parent, at_child;  // its frames; its wrench is told in the child's axes
  std::vector<Coordinate> coordinates;
  /// A frame: calls lead the child to a point or a pose, and its kind is that of a joint from the ground to there.
  Target target = Target::none;
  std::string joint;  // one that closes a loop: calls give the coordinates that it is to have
};

struct FrameDescription {
  std::string name, body;
  Transform<double> X;
};

struct SpringDescription {
  std::string name, body[2];
  Vec3<double> point[2];
  double stiffness, rest_length, damping;
};

struct Description {
  std::string name;
  Vec3<double> gravity;
  std::vector<BodyDescription> bodies;
  std::vector<JointDescription> joints;
  std::vector<FrameDescription> frames;
  std::vector<ConstraintDescription> constraints;
  std::vector<SpringDescription> springs;
  double length = 1.0;  // of a displacement that weighs as much as a radian [m]
  int substructures = automatic;  // at most so many bodies in each; 0: it is not cut; automatic: what costs least
  static constexpr int automatic = -1;
  std::function<void()> look;  // called while a large one is built; what it throws ends that
};

/// The axes that the joint takes for its own, its axis times sign, in those of the description. `constants` gets what depends on them.
Mat3<double> joint_axes(const JointDescription& j, double sign, JointConstants& constants);

/// What acts along velocity k of a joint whose coordinates start at iq. ModelError for a spring where there is no coordinate to act on.
PassiveTerms passive_terms(const JointDescription& j, int k, int iq);

/// Whether its velocity k is an angular one.
bool turns(const JointDescription& j, int k);

class Mechanism {
 public:
  /// Throws ModelError.
  explicit Mechanism(Description description);
  Mechanism(const Mechanism&) = delete;
  Mechanism& operator=(const Mechanism&) = delete;

  const Tree& tree() const { return tree_; }

  struct PlacedFrame {
    int link, body;
    Transform<double> X;
  };
  const std::unordered_map<std::string, PlacedFrame>& frames() const { return frames_; }

  struct PlacedJoint {
    int iq, iv, nq, nv;
    bool closes_a_loop, reversed;
    int body;  // that it carries; -1 where it closes a loop
    int constraint;  // which constraint it is where it closes a loop; -1
  };
  const std::vector<PlacedJoint>& joints() const { return joints_; }  // in the order of the description
  const std::vector<int>& quaternions() const { return quaternions_; }  // where each starts in q
  /// The described joints that close loops, then the described constraints (counted on from the joints): constraint i is number i.
  const std::vector<int>& constraints() const { return described_constraints_; }
  const std::string& constraint_name(int i) const { return constraint_names_[i]; }
  const std::vector<int>& actuators() const { return actuators_; }  // what carries each effort: a velocity, or nv + a row
  /// Multiplications of one factor in joint coordinates (0: more than twice the other), and by substructures (0: it cannot be cut).
  double operations_of_joints() const { return dynamics_.complete() ? dynamics_.operations() : 0.0; }
  double operations_of_substructures() const { return operations_of_substructures_; }
  double mass() const { return mass_; }
  const std::vector<std::string>& massless() const {
    return massless_;
  }  // joints along which nothing that they carry has inertia
  const std::vector<std::string>& idle() const { return idle_; }  // of these, the ones that no loop holds either
  const std::string& tie() const { return tie_; }  // what keeps it from floating; empty: nothing does

 private:
  void span(const Description&);
  void place(const Description&);
  void weld(const JointDescription&, const PlacedJoint&, Body&);
  void join(const Description&, const JointDescription&, const PlacedJoint&, Body&);
  void name_frames(const Description&, const std::unordered_map<std::string, int>& body_of);
  void finish(const Description&);
  void weigh(const Description&);
  void close(const Description&);
  void add_constraints(const Description&);
  void add_motors(const Description&);
  void find_idle(const Description&);
  void order_elimination(const Description&);
  std::string what_ties(const Description&) const;
  void place_between(const std::string& parent, const std::string& child, Constraint& c);
  Constraint closing_joint(const Description&, int joint);
  void add_motion(const Description&, int joint, const Constraint&);
  Constraint other_constraint(const Description&, const ConstraintDescription&);
  Constraint led_joint(const Description&, const ConstraintDescription&);
  void along(const Description&, const ConstraintDescription&, Constraint& c);

  std::vector<int> order_;  // described bodies, ground first (-1), depth first
  std::vector<int> carrier_;  // joint that carries each described body
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
  std::unordered_map<std::string, PlacedFrame> frames_;
  double mass_ = 0.0, operations_of_substructures_ = 0.0;
  ConstraintList constraints_;
  std::vector<Constraint> motions_;
  std::vector<double> driven_, rotor_;
  std::vector<int> described_constraints_, actuators_, mass_first_, chain_;
  EliminationPlan dynamics_, statics_;
  std::unique_ptr<SubstructuredMechanism> pieces_;
  Tree tree_{};
};

}  // namespace sarrus
