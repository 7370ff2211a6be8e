#include "mechanism.hpp"

#include <algorithm>

#include "../joints/visit.hpp"

namespace sarrus {
namespace {

constexpr int ground = -1;

/// Groups of bodies that are connected by joints.
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

/// Graph of bodies and joints: the two bodies of each joint, and the joints at each body (the ground is body 0).
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
    if (j.parent == j.child) throw ModelError("joint '" + j.name + "' connects body '" + j.parent + "' to itself");
    g.parent[i] = body.at(j.parent), g.child[i] = body.at(j.child);
    g.at[g.parent[i] + 1].push_back(static_cast<int>(i)), g.at[g.child[i] + 1].push_back(static_cast<int>(i));
  }
  return g;
}

/// Spanning tree: for each body, its joint towards the ground (-1: none) and the bodies next to it away from the ground; and the number of motors in
/// the tree.
struct SpanningTree {
  std::vector<int> carrier;
  std::vector<std::vector<int>> children;
  int actuated = 0;
};
/// Return the spanning tree of least depth, by a breadth-first search from the ground. `tied` joints must be in the tree. The bodies that they
/// connect form a group: the search enters a group by one joint, and then follows the tied joints.
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
    const int body = queue[head];
    for (const int j : g.at[body + 1]) {
      const int neighbour = g.parent[j] == body ? g.child[j] : g.parent[j];
      if (neighbour == ground || tree.carrier[neighbour] >= 0 || d.joints[j].close_loop) continue;
      if (!tied[j] && entered[group.of(neighbour)]) continue;
      entered[group.of(neighbour)] = 1;
      tree.carrier[neighbour] = j;
      tree.actuated += d.joints[j].actuated;
      tree.children[body + 1].push_back(neighbour);
      queue.push_back(neighbour);
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

Mechanism::Mechanism(Description d) : description_(std::move(d)) {
  for (JointDescription& j : description_.joints) {
    if (!visit_every(j.kind, 0, [](auto joint) -> bool { return joint.is_unconstrained; })) continue;
    if (j.keep_in_tree) throw ModelError("joint '" + j.name + "' does not constrain its bodies, so it cannot be a tree joint");
    j.close_loop = true;
  }
  span(description_);
  lay_out(description_);
  name_frames(description_);
  link_columns();
  point();
  attach_springs(description_);
  close(description_);
  point();
  bake();
  order_elimination(description_);
  decisions_ = decisions();
  tie_ = describe_tie(description_);
  tree_.floats = tie_.empty();
  description_.check_interrupt = nullptr;
}

/// Set the pointers of the tree to the arrays of this object.
void Mechanism::point() {
  tree_.link = links_.data(), tree_.passive = passive_terms_.data(), tree_.angle = angles_.data();
  tree_.column_link = column_link_.data(), tree_.column_parent = column_parent_.data(), tree_.column_depth = column_depth_.data();
  tree_.mass_parent = chain_.empty() ? column_parent_.data() : chain_.data();
  tree_.body = bodies_.data(), tree_.frame = frames_.data(), tree_.spring = springs_.data(),
  tree_.loop_motion = loop_motions_.data();
  tree_.unit = unit_.data(), tree_.per_unit_square = per_unit_square_.data();
  Loops& loops = tree_.loops;
  loops.constraint = constraints_.data(), loops.motion = motions_.data(), loops.actuator = actuators_.data();
  loops.driven = driven_.data(), loops.rotor = rotor_.data(), loops.motor_unit = motor_unit_.data();
  loops.mass_first = mass_first_.data();
}

// Choose the spanning tree. The caller's hints have priority; then as many actuated joints as possible are tree joints; then the tree has the least
// depth. Ties are broken by the order of the description. The remaining joints become loop joints.
void Mechanism::span(const Description& d) {
  Graph graph = graph_of(d);
  Groups kept(d.bodies.size());
  std::vector<char> tied(d.joints.size(), 0);
  for (std::size_t i = 0; i < d.joints.size(); ++i) {
    tied[i] = d.joints[i].keep_in_tree;
    if (tied[i] && !kept.join(graph.parent[i], graph.child[i]))
      throw ModelError("joint '" + d.joints[i].name +
                       "' cannot be in the tree: other joints that must be in the tree already close the loop");
  }
  SpanningTree best = grow(d, graph, kept, tied);
  // also build a tree with all actuated joints, except those that close a loop of actuated joints; use it if it contains more of them
  for (std::size_t i = 0; i < d.joints.size(); ++i)
    if (d.joints[i].actuated && !tied[i] && !d.joints[i].close_loop && kept.join(graph.parent[i], graph.child[i])) tied[i] = 1;
  if (SpanningTree other = grow(d, graph, kept, tied); other.actuated > best.actuated) best = std::move(other);

  joints_.assign(d.joints.size(), {0, 0, 0, 0, true, false, -1, -1, {0, 0}});
  for (std::size_t j = 0; j < d.joints.size(); ++j) joints_[j].ends[0] = graph.parent[j], joints_[j].ends[1] = graph.child[j];
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
    throw ModelError("no joint connects the ground to " + listed(loose) + ": add a joint, or a Free joint for a floating base");
  std::vector<int> stack = {ground};  // number the bodies depth first; children are in the order of the tree
  while (!stack.empty()) {
    const int body = stack.back();
    stack.pop_back();
    order_.push_back(body);
    const std::vector<int>& children = best.children[body + 1];
    stack.insert(stack.end(), children.rbegin(), children.rend());
  }
}

// Create bodies and links, depth first. A link's frame is the joint's frame on the link, with the joint's axis on z.
void Mechanism::lay_out(const Description& d) {
  int iq = 0, iv = 0;
  for (std::size_t j = 0; j < d.joints.size(); ++j) {
    if (joints_[j].closes_a_loop) continue;
    joints_[j].iq = iq, joints_[j].iv = iv, joints_[j].nq = d.joints[j].nq, joints_[j].nv = d.joints[j].nv;
    iq += d.joints[j].nq, iv += d.joints[j].nv;
  }
  tree_.nq = iq, tree_.nv = iv;
  passive_terms_.resize(iv), unit_.resize(iv), per_unit_square_.resize(iv), lacks_inertia_.resize(iv);

  const Transform<double> identity = Transform<double>::identity();
  Link ground_link{};
  ground_link.parent = -1, ground_link.joint = JointKind::fixed, ground_link.X_tree = identity;
  links_.push_back(ground_link);
  bodies_.push_back({-1, -1, 0, identity, identity, Inertia<double>::zero(), false, 0, identity});
  std::vector<int> number(d.bodies.size() + 1, 0);  // links of the ground and of each body of the description
  for (std::size_t n = 1; n < order_.size(); ++n) {
    const int index = carrier_[order_[n]];
    PlacedJoint& placed = joints_[index];
    Body body{};
    body.parent = number[placed.ends[placed.reversed] + 1], body.described = order_[n], body.reversed = placed.reversed;
    body.link = bodies_[body.parent].link;
    if (d.joints[index].nv > 0) join(d.joints[index], placed, body);
    body.child_link = placed.reversed ? bodies_[body.parent].link : body.link;
    number[order_[n] + 1] = placed.body = static_cast<int>(bodies_.size());
    bodies_.push_back(body);
  }
  for (PlacedJoint& placed : joints_)
    for (int& end : placed.ends) end = number[end + 1];
  tree_.links = static_cast<int>(links_.size()), tree_.angles = static_cast<int>(angles_.size());
  tree_.bodies = static_cast<int>(bodies_.size());
}

/// Create a link for a body.
void Mechanism::join(const JointDescription& j, const PlacedJoint& placed, Body& body) {
  const bool turned_round = placed.reversed && visit_every(j.kind, 0, [](auto joint) { return joint.its_own_reverse; });
  Link b{};
  b.parent = bodies_[body.parent].link, b.described = j.kind, b.nv = j.nv, b.iq = placed.iq, b.iv = placed.iv;
  b.joint = placed.reversed && !turned_round ? JointKind::reversed : j.kind;
  b.iangle = static_cast<int>(angles_.size());
  body.link = static_cast<int>(links_.size());
  b.root = b.parent == 0 ? body.link : links_[b.parent].root;
  links_.push_back(b);
  visit_every(j.kind, j.nv, [&](auto joint) {
    int listed = 0, iq = placed.iq;
    for (const Coordinate& c : joint.coordinates) {
      if (!joint.has(j.constants, listed++)) continue;
      if (c.is_angle()) angles_.push_back(iq);
      ++iq;
    }
    if (joint.has_quaternion) quaternions_.push_back(placed.iq);
  });
}

void Mechanism::name_frames(const Description& d) {
  auto named = std::make_shared<std::unordered_map<std::string, int>>();
  const auto add = [&](const std::string& name, int body) {
    const bool is_new = named->emplace(name, static_cast<int>(frames_.size())).second;
    if (is_new) frames_.push_back({bodies_[body].link, body, Transform<double>::identity()});
    return is_new;
  };
  add("ground", 0);
  std::vector<int> number(d.bodies.size());
  for (std::size_t n = 1; n < bodies_.size(); ++n) number[bodies_[n].described] = static_cast<int>(n);
  for (std::size_t i = 0; i < d.bodies.size(); ++i) add(d.bodies[i].name, number[i]);
  for (const FrameDescription& f : d.frames) {
    const auto on = named->find(f.body);
    if (on == named->end() || on->second > static_cast<int>(d.bodies.size()))
      throw ModelError("frame '" + f.name + "' is on body '" + f.body + "', which does not exist");
    if (!add(f.name, frames_[on->second].body)) throw ModelError("two frames, or a frame and a body, are named '" + f.name + "'");
  }
  for (std::size_t j = 0; j < d.joints.size(); ++j)
    for (const int end : {0, 1})
      if (add(d.joints[j].name + (end ? ".child" : ".parent"), joints_[j].ends[end])) joint_frames_.emplace_back(j, end);
  frame_of_ = std::move(named);
}

std::vector<std::string> Mechanism::frame_names() const {
  std::vector<std::string> names;
  for (const auto& frame : *frame_of_) names.push_back(frame.first);
  return names;
}

void Mechanism::link_columns() {
  column_link_.resize(tree_.nv), column_parent_.resize(tree_.nv), column_depth_.resize(tree_.nv);
  for (std::size_t i = 1; i < links_.size(); ++i) {
    Link& b = links_[i];
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
  mass_first_.push_back(0);
  for (int i = 0; i < tree_.nv; ++i) mass_first_.push_back(mass_first_.back() + column_depth_[i] + 1);
}

void Mechanism::attach_springs(const Description& d) {
  for (const SpringDescription& s : d.springs) {
    PointSpring spring{};
    for (int i = 0; i < 2; ++i) {
      const PlacedFrame& on = placed_frame(s.body[i]);
      spring.link[i] = on.link, spring.body[i] = on.body;
    }
    springs_.push_back(spring);
  }
  tree_.springs = static_cast<int>(springs_.size());
}

/// Return the reason why the mechanism does not float: the joints or constraints, other than one joint of six velocities, that connect it to the
/// ground.
std::string Mechanism::describe_tie(const Description& d) const {
  std::vector<std::string> roots;
  for (std::size_t i = 1; i < links_.size(); ++i)
    for (std::size_t j = 0; j < joints_.size() && links_[i].parent == 0; ++j)
      if (!joints_[j].closes_a_loop && joints_[j].nv > 0 && joints_[j].iv == links_[i].iv) roots.push_back(d.joints[j].name);
  if (roots.empty()) return "no body moves";
  if (roots.size() > 1)
    return "joints " + listed(roots) +
           " connect several bodies to the ground; expected one base: if it has captured another body, remove joint '" +
           roots.back() + "', so that only the grasp connects this body";
  if (links_[1].nv != 6) return "joint " + listed(roots) + " constrains its base relative to the ground";
  for (std::size_t i = 0; i < described_constraints_.size(); ++i) {
    const Constraint& c = constraints_.data()[described_constraints_[i]];
    for (int k = 0; k < c.columns; ++k)
      if (column_link_[c.column[k]] == 1)
        return "constraint '" + constraint_names_[i] + "' constrains its base relative to the ground";
  }
  return "";
}

}  // namespace sarrus
