// Parameters that a run stores besides the mechanism's tree, in one block of memory: modified trees without the terms that the run computes itself,
// and the units of its plan. For variants the block follows that of the variant (kernels/variant_copies.hpp), so that each lane has its own
// parameters.
//
// Two terms are computed by the run. Springs along angles of loop joints are force elements, because the run counts revolutions (turns.hpp): the tree
// for control laws does not contain them. Dry friction is solved in the steps (friction.hpp): the integrated tree contains neither term.
#pragma once

#include <cstring>
#include <vector>

#include "plan.hpp"
#include "turns.hpp"

namespace sarrus {

/// Terms that runs compute themselves (springs of loop angles, dry friction): true if a tree, or any of several trees with the same structure, has
/// them.
class RunTerms {
 public:
  explicit RunTerms(const Tree& t) : angles_(loop_angles(t)), spring_(t.loop_nv), friction_(t.nv + t.loop_nv) { add(t); }

  void add(const Tree& t) {
    for (int k = 0; k < t.nv; ++k) friction_[k] |= t.passive[k].friction != 0.0;
    each_loop_term(t, [&](const LoopMotion& joint, int, int k) {
      const PassiveTerms& terms = joint.terms[k];
      const auto acts_on = [&](const LoopAngle& angle) { return terms.iq >= 0 && angle.iq == joint.iq + terms.iq; };
      friction_[t.nv + joint.iv + k] |= terms.friction != 0.0;
      spring_[joint.iv + k] |= terms.has_spring() && std::any_of(angles_.begin(), angles_.end(), acts_on);
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
  /// Create the trees of a run in `memory`, for mechanisms of this structure. take() copies the parameters into them later.
  RunNumbers(const Tree& t, int units, char* memory)
      : described_(t, memory),
        moved_(t, memory + TreeOfRun::bytes(t)),
        unit_(reinterpret_cast<double*>(memory + 2 * TreeOfRun::bytes(t))),
        units_(units) {}

  /// Copy the parameters of a mechanism, or of one mechanism per lane. unit(lane): the plan's units for that lane.
  template <class T, class Units> void take(const Tree& full_tree, const Plan& plan, Units&& unit) const {
    described_.template take<T>(full_tree);
    for (const LoopSpring& s : plan.force_elements.all<LoopSpring>()) {
      PassiveTerms& terms = described_.of(s.terms);
      for (double* x : {&terms.stiffness, &terms.nonlinear.quadratic_stiffness, &terms.nonlinear.cubic_stiffness})
        described_.template drop<T>(*x);
    }
    described_.update_flags(full_tree);
    moved_.template take<T>(*described_.tree);
    for (int k = 0; k < plan.frictions; ++k) moved_.template drop<T>(moved_.of(plan.friction[k].terms).friction);
    moved_.update_flags(full_tree);
    for (int l = 0; l < width_of<T>; ++l)
      for (int k = 0; k < units_; ++k) lane(place_of<T>(full_tree, unit_[k]), l) = unit(l)[k];
  }
  /// The tree that is integrated.
  const Tree& tree() const { return *moved_.tree; }
  void give(Plan& plan, const Tree& full_tree) const {
    plan.full_tree = &full_tree, plan.described = described_.tree;
    if (units_ > 0) plan.have_units(unit_, full_tree);
  }

 private:
  template <class T> static T& place_of(const Tree& t, double& number) {
    if constexpr (has_own_numbers<T>)
      return const_cast<T&>(t.numbers<T>()(number));
    else
      return number;
  }

  /// A copy of a tree that has its own array of passive terms along joints, so that these can be changed.
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
    PassiveTerms& of(const JointTerms& at) const { return const_cast<PassiveTerms&>(at.of(*tree)); }
    template <class T> void drop(double& x) const { x = 0.0, place_of<T>(*tree, x) = T(0.0); }
    /// Update the flags of the forces that the tree contains. If there are several mechanisms the flags do not change, because the current parameters
    /// belong to one lane.
    void update_flags(const Tree& full_tree) const {
      if (full_tree.lanes != 0) return;
      tree->has_joint_forces = tree->has_nonlinear_forces = false, tree->ties_links = tree->springs > 0;
      for (int k = 0; k < tree->nv; ++k) tree->note(passive[k]);
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

  TreeOfRun described_, moved_;
  double* unit_;
  int units_;
};

}  // namespace sarrus
