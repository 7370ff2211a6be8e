#include "mechanism.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <functional>

#include "../joints/visit.hpp"

namespace sarrus {
namespace {

constexpr int ground = -1;

/// Bodies that joints have put together.
struct Groups {
  explicit Groups(std::size_t bodies) : up(bodies + 1) {
    for (std::size_t i = 0; i < up.size(); ++i) up[i] = static_cast<int>(i);
  }
  int of(int body) {
    int i = body + 1;
    while (up[i] != i) i = up[i] = up[up[i]];
    return i;
  }
  bool join(int a, int b) {
    const int i = of(a), j = of(b);
    up[i] = j;
    return i != j;
  }
  std::vector<int> up;
};

/// A body of less than that share of the heaviest one's mass counts as one without mass: loops make it feel so much more than it has that
/// residuals and rows would be measured by what is nothing beside the forces that pass through it.
constexpr double light = 1e-6;
/// Whether a body's own inertia, and armature, withstand every motion of its joint.
bool has_inertia_along(const Link& b, const Motion<double>* S, const PassiveTerms* passive) {
  Eigen::MatrixXd G(b.nv, b.nv);
  for (int k = 0; k < b.nv; ++k) {
    const Sym3<double>& I = b.inertia.I;
    const double size = (I.xx + I.yy + I.zz) * dot(S[k].angular, S[k].angular) + b.inertia.m * dot(S[k].linear, S[k].linear);
    for (int l = 0; l < b.nv; ++l) G(k, l) = dot(S[l], b.inertia * S[k]);
    if (!(G(k, k) > 1e-14 * size)) G(k, k) = 0.0;
    G(k, k) += passive[k].armature;
    if (!(G(k, k) > 0.0)) return false;
  }
  const Eigen::VectorXd scale = G.diagonal().cwiseSqrt().cwiseInverse();
  return (scale.asDiagonal() * G * scale.asDiagonal()).eval().ldlt().vectorD().minCoeff() > 1e-12;
}

/// Bodies and joints: the ends of each joint, and the joints at each body, the ground first.
struct Graph {
  std::vector<int> parent, child;
  std::vector<std::vector<int>> at;
};
Graph graph_of(const Description& d) {
  std::unordered_map<std::string, int> body = {{"ground", ground}}, joint;
  for (std::size_t i = 0; i < d.bodies.size(); ++i) {
    if (d.bodies[i].name == "ground") throw ModelError("a body cannot be named 'ground': that is the world");
    if (!body.emplace(d.bodies[i].name, static_cast<int>(i)).second)
      throw ModelError("two bodies are named '" + d.bodies[i].name + "'");
  }
  Graph g = {std::vector<int>(d.joints.size()), std::vector<int>(d.joints.size()),
             std::vector<std::vector<int>>(d.bodies.size() + 1)};
  for (std::size_t i = 0; i < d.joints.size(); ++i) {
    const JointDescription& j = d.joints[i];
    if (!joint.emplace(j.name, static_cast<int>(i)).second) throw ModelError("two joints are named '" + j.name + "'");
    for (const std::string& end : {j.parent, j.child})
      if (!body.count(end)) throw ModelError("joint '" + j.name + "' refers to body '" + end + "', which does not exist");
    if (j.parent == j.child) throw ModelError("joint '" + j.name + "' joins body '" + j.parent + "' to itself");
    g.parent[i] = body.at(j.parent), g.child[i] = body.at(j.child);
    g.at[g.parent[i] + 1].push_back(static_cast<int>(i)), g.at[g.child[i] + 1].push_back(static_cast<int>(i));
  }
  return g;
}

/// The joint that carries each body, -1: none; the bodies that each one carries, the ground first; how many motors are in it.
struct SpanningTree {
  std::vector<int> carrier;
  std::vector<std::vector<int>> children;
  int actuated = 0;
};
/// Of least depth, breadth first from the ground. Joints that are `tied` hold groups of bodies together: such a group is entered once, and then
/// passed along them.
SpanningTree grow(const Description& d, Graph& g, Groups& group, const std::vector<char>& tied) {
  SpanningTree tree{std::vector<int>(d.bodies.size(), -1), std::vector<std::vector<int>>(d.bodies.size() + 1)};
  std::vector<char> entered(d.bodies.size() + 1, 0);
  for (std::vector<int>& list : g.at)
    std::stable_sort(list.begin(), list.end(), [&](int a, int b) {
      return tied[a] != tied[b] ? tied[a] > tied[b] : d.joints[a].actuated > d.joints[b].actuated;
    });
  entered[group.of(ground)] = 1;
  std::vector<int> queue = {ground};
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const int here = queue[head];
    for (const int j : g.at[here + 1]) {
      const int there = g.parent[j] == here ? g.child[j] : g.parent[j];
      if (there == ground || tree.carrier[there] >= 0 || d.joints[j].close_loop) continue;
      if (!tied[j] && entered[group.of(there)]) continue;
      entered[group.of(there)] = 1;
      tree.carrier[there] = j;
      tree.actuated += d.joints[j].actuated;
      tree.children[here + 1].push_back(there);
      queue.push_back(there);
    }
  }
  return tree;
}

template <class List> std::string listed(const List& names) {
  std::string text;
  for (const std::string& n : names) text += (text.empty() ? "'" : ", '") + n + "'";
  return text;
}

}  // namespace

Mat3<double> joint_axes(const JointDescription& j, double sign, JointConstants& constants) {
  return visit_every(j.kind, 0, [&](auto joint) { return joint.axes(j.axis * sign, j.axis2, constants); });
}

PassiveTerms passive_terms(const JointDescription& j, int k, int iq) {
  return visit_every(j.kind, j.nv, [&](auto joint) {
    if (j.stiffness[k] != 0.0 && !joint.has_ball_spring && !joint.is_rate(k))
      throw ModelError("joint '" + j.name + "': a " + joint.name + " joint takes no stiffness along velocity " +
                       std::to_string(k));
    return PassiveTerms{j.armature[k],  j.damping[k], j.friction[k],
                        j.stiffness[k], j.rest[k],    joint.has_ball_spring ? -1 : iq + k};
  });
}

bool turns(const JointDescription& j, int k) {
  return visit_every(j.kind, j.nv, [&](auto joint) {
    int listed = 0, velocity_index = 0;
    for (const Coordinate& velocity : joint.velocities)
      if (joint.has(j.constants, listed++) && velocity_index++ == k) return velocity.is_angle();
    return true;
  });
}

Mechanism::Mechanism(Description d) {
  for (JointDescription& j : d.joints) visit_every(j.kind, 0, [&](auto joint) { joint.settle(j.constants); });
  span(d);
  place(d);
  finish(d);
  weigh(d);
  close(d);
  tie_ = what_ties(d);
  tree_.floats = tie_.empty();
}

// The spanning tree: least depth, actuated joints in it where possible, then in the order of the description; hints come before all of
// that. What is left over closes loops.
void Mechanism::span(const Description& d) {
  Graph graph = graph_of(d);
  Groups kept(d.bodies.size());
  std::vector<char> tied(d.joints.size(), 0);
  for (std::size_t i = 0; i < d.joints.size(); ++i) {
    tied[i] = d.joints[i].keep_in_tree;
    if (tied[i] && !kept.join(graph.parent[i], graph.child[i]))
      throw ModelError("joint '" + d.joints[i].name +
                       "' cannot stay in the tree: others that must stay there already close the loop");
  }
  SpanningTree best = grow(d, graph, kept, tied);
  // least depth may have left an actuated joint out: then the actuated ones that close no loop among themselves are tied as well
  for (std::size_t i = 0; i < d.joints.size(); ++i)
    if (d.joints[i].actuated && !tied[i] && !d.joints[i].close_loop && kept.join(graph.parent[i], graph.child[i])) tied[i] = 1;
  if (SpanningTree other = grow(d, graph, kept, tied); other.actuated > best.actuated) best = std::move(other);

  joints_.assign(d.joints.size(), {0, 0, 0, 0, true, false, -1, -1});
  carrier_ = best.carrier;
  std::vector<std::string> loose;
  for (std::size_t i = 0; i < d.bodies.size(); ++i) {
    const int j = carrier_[i];
    if (j < 0) {
      loose.push_back(d.bodies[i].name);
      continue;
    }
    joints_[j].closes_a_loop = false;
    joints_[j].reversed = graph.parent[j] == static_cast<int>(i);
  }
  if (!loose.empty())
    throw ModelError("no joint leads from the ground to " + listed(loose) + ": join it, or let it float with a Free joint");
  std::vector<int> stack = {ground};  // depth first, children in their order
  while (!stack.empty()) {
    const int here = stack.back();
    stack.pop_back();
    order_.push_back(here);
    const std::vector<int>& children = best.children[here + 1];
    stack.insert(stack.end(), children.rbegin(), children.rend());
  }
}

// Bodies and links, depth first. A link's frame is its joint's frame on it, with the joint's axis on z.
void Mechanism::place(const Description& d) {
  int iq = 0, iv = 0;
  for (std::size_t j = 0; j < d.joints.size(); ++j) {
    if (joints_[j].closes_a_loop) continue;
    joints_[j].iq = iq, joints_[j].iv = iv, joints_[j].nq = d.joints[j].nq, joints_[j].nv = d.joints[j].nv;
    iq += d.joints[j].nq, iv += d.joints[j].nv;
  }
  tree_.nq = iq, tree_.nv = iv;
  passive_terms_.resize(iv), unit_.resize(iv), per_unit_square_.resize(iv);

  const Transform<double> identity = Transform<double>::identity();
  Link ground_link{};
  ground_link.parent = -1, ground_link.joint = JointKind::fixed, ground_link.X_tree = identity,
  ground_link.inertia = Inertia<double>::zero();
  links_.push_back(ground_link);
  bodies_.push_back({-1, -1, 0, identity, identity, Inertia<double>::zero(), false, 0, identity});
  std::unordered_map<std::string, int> body_of = {{"ground", 0}};
  for (std::size_t n = 1; n < order_.size(); ++n) {
    const BodyDescription& described = d.bodies[order_[n]];
    const int index = carrier_[order_[n]];
    const JointDescription& j = d.joints[index];
    PlacedJoint& placed = joints_[index];
    const int parent_body = body_of.at(placed.reversed ? j.child : j.parent);
    Body body{parent_body, order_[n], bodies_[parent_body].link, identity, identity, described.inertia, placed.reversed,
              0,           identity};
    if (j.nv == 0)
      weld(j, placed, body);
    else
      join(d, j, placed, body);
    body.X = body.X_joint * (placed.reversed ? j.at_parent : j.at_child).inverse();
    body.child_link = placed.reversed ? bodies_[parent_body].link : body.link;
    body.X_child = placed.reversed ? bodies_[parent_body].X * j.at_child : body.X_joint;
    links_[body.link].inertia += transformed(body.X, body.inertia);
    body_of[described.name] = placed.body = static_cast<int>(bodies_.size());
    bodies_.push_back(body);
  }
  name_frames(d, body_of);
}

/// A body moves with its parent. A gimbal with nothing free still displaces.
void Mechanism::weld(const JointDescription& j, const PlacedJoint& placed, Body& body) {
  const Coordinates<double> none = {nullptr, nullptr, nullptr, &j.constants};
  Transform<double> across = visit_every(j.kind, 0, [&](auto joint) { return joint.transform(none); });
  if (placed.reversed) across = across.inverse();
  body.X_joint = bodies_[body.parent].X * (placed.reversed ? j.at_child : j.at_parent) * across;
}

/// A body gets a link of its own.
void Mechanism::join(const Description& d, const JointDescription& j, const PlacedJoint& placed, Body& body) {
  const Body& before = bodies_[body.parent];
  const bool turned_round = placed.reversed && visit_every(j.kind, 0, [](auto joint) { return joint.its_own_reverse; });
  Link b{};
  b.constants = j.constants;
  const Transform<double> turn = {joint_axes(j, turned_round ? -1.0 : 1.0, b.constants), zero3<double>()};
  b.parent = before.link, b.joint = b.described = j.kind, b.nv = j.nv, b.iq = placed.iq, b.iv = placed.iv;
  b.iangle = static_cast<int>(angles_.size());
  b.X_tree = before.X * (placed.reversed ? j.at_child : j.at_parent) * turn;
  b.R_joint = turn.R;
  b.inertia = Inertia<double>::zero();
  if (placed.reversed && !turned_round) b.joint = JointKind::reversed, b.constants.reversed = j.kind;
  body.link = static_cast<int>(links_.size());
  body.X_joint = turn.inverse();
  b.root = b.parent == 0 ? body.link : links_[b.parent].root;
  links_.push_back(b);

  // which coordinates are angles, and the passive forces along each velocity
  visit_every(j.kind, j.nv, [&](auto joint) {
    int listed = 0, iq = placed.iq;
    for (const Coordinate& c : joint.coordinates) {
      if (!joint.has(j.constants, listed++)) continue;
      if (c.is_angle()) angles_.push_back(iq);
      ++iq;
    }
    if (joint.has_quaternion) quaternions_.push_back(placed.iq);
    for (int k = 0; k < joint.nv; ++k) {
      const PassiveTerms terms = passive_terms_[placed.iv + k] = passive_terms(j, k, placed.iq);
      unit_[placed.iv + k] = turns(j, k) ? 1.0 : d.length;
      per_unit_square_[placed.iv + k] = 1.0 / (unit_[placed.iv + k] * unit_[placed.iv + k]);
      tree_.has_armature |= terms.armature != 0.0;
      tree_.has_joint_forces |= terms.has_forces();
    }
  });
}

void Mechanism::name_frames(const Description& d, const std::unordered_map<std::string, int>& body_of) {
  frames_["ground"] = {0, 0, Transform<double>::identity()};
  for (const BodyDescription& b : d.bodies) {
    const int p = body_of.at(b.name);
    frames_[b.name] = {bodies_[p].link, p, bodies_[p].X};
  }
  for (const FrameDescription& f : d.frames) {
    const auto p = body_of.find(f.body);
    if (p == body_of.end()) throw ModelError("frame '" + f.name + "' sits on body '" + f.body + "', which does not exist");
    const Body& body = bodies_[p->second];
    if (!frames_.emplace(f.name, PlacedFrame{body.link, p->second, body.X * f.X}).second)
      throw ModelError("two frames, or a frame and a body, are named '" + f.name + "'");
  }
}

void Mechanism::finish(const Description& d) {
  column_link_.resize(tree_.nv), column_parent_.resize(tree_.nv), column_depth_.resize(tree_.nv);
  for (std::size_t i = 1; i < links_.size(); ++i) {
    Link& b = links_[i];
    b.euler = euler_tensor(b.inertia.I);
    b.end = static_cast<int>(i) + 1;
    const Link& p = links_[b.parent];
    for (int k = 0; k < b.nv; ++k) {
      column_link_[b.iv + k] = static_cast<int>(i);
      column_parent_[b.iv + k] = k > 0 ? b.iv + k - 1 : b.parent == 0 ? -1 : p.iv + p.nv - 1;
      const int above = column_parent_[b.iv + k];
      column_depth_[b.iv + k] = above < 0 ? 0 : column_depth_[above] + 1;
    }
  }
  for (std::size_t i = links_.size() - 1; i > 0; --i) {
    Link& p = links_[links_[i].parent];
    p.end = std::max(p.end, links_[i].end);
  }

  tree_.links = static_cast<int>(links_.size()), tree_.angles = static_cast<int>(angles_.size());
  tree_.bodies = static_cast<int>(bodies_.size());
  tree_.link = links_.data(), tree_.passive = passive_terms_.data(), tree_.angle = angles_.data();
  tree_.column_link = column_link_.data(), tree_.column_parent = column_parent_.data(), tree_.column_depth = column_depth_.data(),
  tree_.mass_parent = column_parent_.data(), tree_.body = bodies_.data();
  for (const SpringDescription& s : d.springs) {
    PointSpring spring{};
    for (int i = 0; i < 2; ++i) {
      const PlacedFrame& on = frames_.at(s.body[i]);
      spring.link[i] = on.link, spring.body[i] = on.body, spring.point[i] = on.X.R * s.point[i] + on.X.p;
    }
    spring.stiffness = s.stiffness, spring.rest_length = s.rest_length, spring.damping = s.damping;
    springs_.push_back(spring);
  }
  tree_.springs = static_cast<int>(springs_.size()), tree_.spring = springs_.data();
  tree_.ties_links = tree_.springs > 0;
  tree_.gravity = d.gravity;
}

// A joint along which its whole subtree, taken rigid, has no inertia in a few configurations of no particular kind has none anywhere. And one
// along which its own body has none, or next to none, may find none in some configuration: what else it moves may then give way.
void Mechanism::weigh(const Description& d) {
  for (const Link& b : links_) mass_ += b.inertia.m;
  std::vector<char> moves_mass(tree_.nv, 0);
  lacks_inertia_.assign(tree_.nv, 0);
  double heaviest = 0.0;
  for (const Link& b : links_) heaviest = std::max(heaviest, b.inertia.m);
  tree_.light = light * heaviest;
  for (int trial = 1; trial <= 3; ++trial) {
    std::vector<double> q(tree_.nq), sines(angles_.size() + 1), cosines(angles_.size() + 1);
    for (int k = 0; k < tree_.nq; ++k) q[k] = std::sin(trial + 1.7 * k);
    for (std::size_t k = 0; k < angles_.size(); ++k) sines[k] = std::sin(q[angles_[k]]), cosines[k] = std::cos(q[angles_[k]]);
    std::vector<Inertia<double>> composite(links_.size(), Inertia<double>::zero());
    for (std::size_t i = links_.size() - 1; i > 0; --i) {
      const Link& b = links_[i];
      composite[i] += b.inertia;
      const Coordinates<double> c = {q.data() + b.iq, sines.data() + b.iangle, cosines.data() + b.iangle, &b.constants};
      JointMotion<double> J;
      joint_motion<double>(b.joint, b.nv, c, nullptr, J);
      for (int k = 0; k < b.nv; ++k) {
        const Motion<double>& s = J.column[k];
        const Sym3<double>& I = composite[i].I;
        const double rounding = 1e-14 * (I.xx + I.yy + I.zz + composite[i].m * dot(s.linear, s.linear));
        moves_mass[b.iv + k] |= dot(s, composite[i] * s) > rounding || passive_terms_[b.iv + k].armature > 0.0;
      }
      if (b.inertia.m <= tree_.light || !has_inertia_along(b, J.column, passive_terms_.data() + b.iv))
        std::fill_n(lacks_inertia_.begin() + b.iv, b.nv, char(1));
      composite[b.parent] += transformed(b.X_tree * J.X, composite[i]);
    }
  }
  tree_.unit = unit_.data(), tree_.per_unit_square = per_unit_square_.data(), tree_.length = d.length, tree_.mass = mass_;
  tree_.lacks_inertia =
      std::find(lacks_inertia_.begin(), lacks_inertia_.end(), 1) == lacks_inertia_.end() ? nullptr : lacks_inertia_.data();
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    const auto first = moves_mass.begin() + joints_[j].iv, last = first + joints_[j].nv;
    if (!joints_[j].closes_a_loop && std::find(first, last, 0) != last) massless_.push_back(d.joints[j].name);
  }
}

/// What the ground has hold of, besides the one body that a joint of six velocities leaves free.
std::string Mechanism::what_ties(const Description& d) const {
  std::vector<std::string> roots;
  for (std::size_t i = 1; i < links_.size(); ++i)
    for (std::size_t j = 0; j < joints_.size() && links_[i].parent == 0; ++j)
      if (!joints_[j].closes_a_loop && joints_[j].nv > 0 && joints_[j].iv == links_[i].iv) roots.push_back(d.joints[j].name);
  if (roots.empty()) return "nothing of it moves";
  if (roots.size() > 1) return "joints " + listed(roots) + " lead to the ground, and a base is one body";
  if (links_[1].nv != 6) return "joint " + listed(roots) + " ties it to the ground";
  for (std::size_t i = 0; i < described_constraints_.size(); ++i) {
    const Constraint& c = constraints_.data()[described_constraints_[i]];
    for (int k = 0; k < c.columns; ++k)
      if (column_link_[c.column[k]] == 1) return "constraint '" + constraint_names_[i] + "' ties its base to the ground";
  }
  return "";
}

}  // namespace sarrus
