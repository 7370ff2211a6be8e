// Many mechanisms with the same structure and different parameters. One block contains all arrays that kernels read, with the parameters of the first
// variant. For each variant, only those numbers are stored that differ from the first variant in at least one variant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "mechanism.hpp"
#include "variant_numbers.hpp"

namespace sarrus {

class Variants {
 public:
  /// Create an empty list of variants, all of which will have the structure of this mechanism.
  explicit Variants(const Mechanism& first);
  /// Return the description of the next variant: change its parameters, then call add(). Initially it is the description of the previous variant.
  Description& description() { return reference_->description_; }
  /// Add a variant with the parameters in description(). Raises ModelError if these change the structure.
  void add();
  /// Add an existing mechanism as a variant.
  void add(const Mechanism& variant);
  std::int64_t size() const { return count_; }
  /// Prepare the data for the kernels. Call once, after all variants are added.
  void finish();
  const VariantNumbers& view() const { return view_; }
  /// Return Tree::length and Tree::mass of variant i.
  double length(std::int64_t i) const { return number_of(i, reference_->tree_.length); }
  double mass(std::int64_t i) const { return number_of(i, reference_->tree_.mass); }

 private:
  /// An array, or the tree itself: its address in the reference mechanism, and its offset in the block.
  struct Part {
    const char* from;
    std::size_t bytes, at;
  };
  struct Numbers {
    const double* from;
    int count;
    std::size_t at;
    VariantNumbers::Reader reader;
  };
  struct Flags {
    bool has_armature, has_joint_forces, has_nonlinear_forces, ties_links;
    void add(const Tree& t) {
      has_armature |= t.has_armature, has_joint_forces |= t.has_joint_forces, ties_links |= t.ties_links;
      has_nonlinear_forces |= t.has_nonlinear_forces;
    }
    void give(Tree& t) const {
      t.has_armature = has_armature, t.has_joint_forces = has_joint_forces, t.ties_links = ties_links;
      t.has_nonlinear_forces = has_nonlinear_forces;
    }
  };

  template <class T> void part(const T* from, std::size_t count);
  template <class All> void parts(const All& all) { part(all.data(), all.size()); }
  void number(const double* from, int count);
  void number(const Transform<double>& X) { number(X.R.data(), 9), number(X.p.data(), 3); }
  void number(const Inertia<double>& I) { number(&I.m, 1), number(I.h.data(), 3), number(&I.I.xx, 6); }
  void number(const Link& b);
  void number(const PassiveTerms& p) { number(&p.armature, PassiveTerms::numbers); }
  void number(const Constraint& c);
  void numbers(const std::vector<double>& all) { number(all.data(), static_cast<int>(all.size())); }
  template <class All> void numbers(const All& all) {
    for (const auto& x : all) number(x);
  }
  void sizes(const Tree& t) { number(&t.length, 1), number(&t.mass, 1), number(&t.light, 1); }
  void list();
  void point(Tree& t);
  void group_values();
  std::string joint_of(int velocity) const;
  double number_of(std::int64_t i, const double& number) const;
  std::size_t place_of(const void* from) const;
  void keep_pointer(const void* at, const void* to);

  std::unique_ptr<Mechanism> reference_;  // the last variant that was added
  std::vector<std::string> massless_;
  bool has_mass_;
  std::vector<char> decisions_, advancing_;
  std::vector<Part> parts_;
  std::vector<Numbers> all_;
  std::vector<VariantNumbers::Pointer> pointers_;
  std::vector<double> first_, now_;  // values of all parameters of the first variant, and of the last added variant
  std::vector<int> differs_;  // indices of the numbers that differ
  std::vector<char> is_listed_;
  std::vector<std::size_t> place_, at_;  // offsets in the block: of all parameters, and of the differing ones
  std::vector<double> rows_;  // (variants x differing numbers) values
  std::unique_ptr<double, void (*)(double*)> values_{
      nullptr, [](double* x) { ::operator delete(x, std::align_val_t{VariantNumbers::line}); }};
  VariantNumbers::Reader reader_ = VariantNumbers::newton_euler;  // of the numbers that are listed next
  std::vector<char> lacks_inertia_;
  std::vector<char> has_forces_;  // LoopMotion::has_forces of each loop joint
  Flags flags_{}, flags_of_pieces_{};
  std::vector<char> block_;
  VariantNumbers view_{};
  std::size_t bytes_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace sarrus
