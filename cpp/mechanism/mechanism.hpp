// A mechanism as a user describes it (a graph of bodies and joints), and what the kernels make of it (a tree with its constants).
// A Mechanism does not change once it is built and may be used by any number of threads.
#pragma once

#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "tree.hpp"

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
  JointConstants constants;  // pitch, or a gimbal's mask, sines and displacements
  Transform<double> at_parent, at_child;  // the joint's frame in either body
  bool actuated;
  std::vector<double> armature, damping, friction, stiffness, rest;  // per velocity
  int nq, nv;
};

struct FrameDescription {
  std::string name, body;
  Transform<double> X;
};

struct Description {
  std::string name;
  Vec3<double> gravity;
  std::vector<BodyDescription> bodies;
  std::vector<JointDescription> joints;
  std::vector<FrameDescription> frames;
};

/// A frame whose third axis is n: x of it is the x-axis (where that is too near n, the y-axis) made perpendicular to n.
Mat3<double> axis_frame(const Vec3<double>& n);

class Mechanism {
 public:
  /// Throws ModelError.
  explicit Mechanism(const Description& description);
  Mechanism(const Mechanism&) = delete;
  Mechanism& operator=(const Mechanism&) = delete;

  const Tree& tree() const { return tree_; }

  struct PlacedFrame {
    int body, part;
    Transform<double> X;
  };
  const std::unordered_map<std::string, PlacedFrame>& frames() const { return frames_; }

  struct PlacedJoint {
    int iq, iv, nq, nv;
    bool closes_a_loop, reversed;
    int part;  // the part that it carries; -1 where it closes a loop
  };
  const std::vector<PlacedJoint>& joints() const { return joints_; }  // in the order of the description
  const std::vector<int>& parts() const { return parts_of_bodies_; }  // part of each described body
  const std::vector<int>& quaternions() const { return quaternions_; }  // where each starts in q
  const std::vector<std::string>& loops() const { return loops_; }  // names of the joints that close them
  double mass() const { return mass_; }
  const std::vector<std::string>& massless() const { return massless_; }  // joints along which nothing has inertia

 private:
  void span(const Description&);
  void place(const Description&);
  void finish(const Description&);
  void weigh(const Description&);

  std::vector<int> order_;  // described bodies, ground first (-1), depth first
  std::vector<int> carrier_;  // joint that carries each described body
  std::vector<Body> bodies_;
  std::vector<Freedom> freedoms_;
  std::vector<Part> parts_;
  std::vector<int> angles_, column_body_, column_parent_, quaternions_, parts_of_bodies_;
  std::vector<PlacedJoint> joints_;
  std::vector<std::string> loops_, massless_;
  std::unordered_map<std::string, PlacedFrame> frames_;
  double mass_ = 0.0;
  Tree tree_{};
};

}  // namespace sarrus
