// What a run has of a mechanism's numbers beside its tree, in one piece of memory: the trees without what it takes over from them, and the units
// of its plan. Of variants it stands behind their block (kernels/variant_copies.hpp), so that each lane has its own.
//
// A run takes over the springs along angles of joints that close loops, whose turns it counts (turns.hpp): the tree that control laws know has
// none. And it takes over dry friction, of which its steps decide (friction.hpp): the tree that is integrated has neither.
#pragma once

#include <cstring>
#include <vector>

#include "plan.hpp"
#include "turns.hpp"

namespace sarrus {

/// Which terms runs take over: those that the tree, or one of several of the same structure, has.
class TakenOver {
 public:
  explicit TakenOver(const Tree& t) : angles_(loop_angles(t)), spring_(t.loop_nv), friction_(t.nv + t.loop_nv) { look(t); }

  void look(const Tree& t) {
    for (int k = 0; k < t.nv; ++k) friction_[k] |= t.passive[k].friction != 0.0;
    each_loop_term(t, [&](const LoopMotion& joint, int, int k) {
      const PassiveTerms& terms = joint.terms[k];
      const auto acts_on = [&](const LoopAngle& angle) { return terms.iq >= 0 && angle.iq == joint.iq + terms.iq; };
      friction_[t.nv + joint.iv + k] |= terms.friction != 0.0;
      spring_[joint.iv + k] |= terms.stiffness != 0.0 && std::any_of(angles_.begin(), angles_.end(), acts_on);
    });
  }
  const std::vector<LoopAngle>& angles() const { return angles_; }
  std::vector<JointFriction> frictions(const Tree& t) const {
    std::vector<JointFriction> all;
    for (int k = 0; k < t.nv; ++k)
      if (friction_[k]) all.push_back({k, {-1, k}});
    each_loop_term(t, [&](const LoopMotion& joint, int i, int k) {
      if (const int iv = t.nv + joint.iv + k; friction_[iv]) all.push_back({iv, {i, k}});
    });
    return all;
  }
  std::vector<LoopSpring> springs(const Tree& t) const {
    std::vector<LoopSpring> all;
    each_loop_term(t, [&](const LoopMotion& joint, int i, int k) {
      if (spring_[joint.iv + k]) all.push_back({{}, {t.nq + joint.iq + joint.terms[k].iq, t.nv + joint.iv + k}, {i, k}});
    });
    return all;
  }

 private:
  template <class Visit> static void each_loop_term(const Tree& t, Visit&& visit) {
    for (int i = 0; i < t.loop_motions; ++i)
      for (int k = 0; k < t.loop_motion[i].nv; ++k) visit(t.loop_motion[i], i, k);
  }
  std::vector<LoopAngle> angles_;
  std::vector<char> spring_, friction_;
};

class RunNumbers {
 public:
  static std::size_t bytes(const Tree& t, int units) {
    return 2 * TreeOfRun::bytes(t) + VariantNumbers::lines(static_cast<std::size_t>(units) * sizeof(double));
  }
  /// For mechanisms of this structure; take() gives it their numbers.
  RunNumbers(const Tree& t, int units, char* memory)
      : known_(t, memory),
        moved_(t, memory + TreeOfRun::bytes(t)),
        unit_(reinterpret_cast<double*>(memory + 2 * TreeOfRun::bytes(t))),
        units_(units) {}

  /// Those of a mechanism, or of one a lane; unit(lane) are the plan's units there.
  template <class T, class Units> void take(const Tree& whole, const Plan& plan, Units&& unit) const {
    known_.template take<T>(whole);
    for (const LoopSpring& s : plan.force_elements.all<LoopSpring>()) known_.template drop<T>(s.terms, &PassiveTerms::stiffness);
    known_.look(whole);
    moved_.template take<T>(*known_.tree);
    for (int k = 0; k < plan.frictions; ++k) moved_.template drop<T>(plan.friction[k].terms, &PassiveTerms::friction);
    moved_.look(whole);
    for (int l = 0; l < width_of<T>; ++l)
      for (int k = 0; k < units_; ++k) lane(place_of<T>(whole, unit_[k]), l) = unit(l)[k];
  }
  /// What is integrated.
  const Tree& tree() const { return *moved_.tree; }
  void give(Plan& plan, const Tree& whole) const {
    plan.whole = &whole, plan.described = known_.tree;
    if (units_ > 0) plan.have_units(unit_, whole);
  }

 private:
  template <class T> static T& place_of(const Tree& t, double& number) {
    if constexpr (has_own_numbers<T>)
      return const_cast<T&>(t.numbers<T>()(number));
    else
      return number;
  }

  /// A tree with terms of its own along its joints.
  struct TreeOfRun {
    Tree* tree;
    PassiveTerms* passive;
    LoopMotion* motion;

    static std::size_t bytes(const Tree& t) {
      return place_of_motions(t) + VariantNumbers::lines(t.loop_motions * sizeof(LoopMotion));
    }
    TreeOfRun(const Tree& t, char* memory)
        : tree(reinterpret_cast<Tree*>(memory)),
          passive(reinterpret_cast<PassiveTerms*>(memory + VariantNumbers::lines(sizeof(Tree)))),
          motion(reinterpret_cast<LoopMotion*>(memory + place_of_motions(t))) {}

    template <class T> void take(const Tree& from) const {
      copy<T>(from, tree, &from, sizeof(Tree));
      copy<T>(from, passive, from.passive, from.nv * sizeof(PassiveTerms));
      copy<T>(from, motion, from.loop_motion, from.loop_motions * sizeof(LoopMotion));
      tree->passive = passive, tree->loop_motion = motion;
    }
    template <class T> void drop(const JointTerms& at, double PassiveTerms::* number) const {
      double& x = const_cast<PassiveTerms&>(at.of(*tree)).*number;
      x = 0.0, place_of<T>(*tree, x) = T(0.0);
    }
    /// Whether there are forces still. The numbers at hand do not tell it of several: then there may be what there was.
    void look(const Tree& whole) const {
      if (whole.lanes != 0) return;
      tree->has_joint_forces = false, tree->ties_links = tree->springs > 0;
      for (int k = 0; k < tree->nv; ++k) tree->has_joint_forces |= passive[k].has_forces();
      for (LoopMotion* joint = motion; joint < motion + tree->loop_motions; ++joint) {
        joint->has_forces =
            std::any_of(joint->terms, joint->terms + joint->nv, [](const PassiveTerms& terms) { return terms.has_forces(); });
        tree->ties_links |= joint->has_forces || joint->has_armature;
      }
    }

   private:
    static std::size_t place_of_motions(const Tree& t) {
      return VariantNumbers::lines(sizeof(Tree)) + VariantNumbers::lines(t.nv * sizeof(PassiveTerms));
    }
    template <class T> static void copy(const Tree& t, void* to, const void* from, std::size_t bytes) {
      if (bytes == 0) return;
      std::memcpy(to, from, bytes);
      if constexpr (has_own_numbers<T>) {
        const auto lanes = [&](const void* at) { return &place_of<T>(t, *static_cast<double*>(const_cast<void*>(at))); };
        std::memcpy(static_cast<void*>(lanes(to)), lanes(from), bytes * T::width);
      }
    }
  };

  TreeOfRun known_, moved_;
  double* unit_;
  int units_;
};

}  // namespace sarrus
