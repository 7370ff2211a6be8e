#include "variants.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "../joints/visit.hpp"

namespace sarrus {
namespace {
/// Return, for each joint, true if it is helical with nonzero pitch. The pose of such a joint determines its number of revolutions.
std::vector<char> advancing(const Description& d) {
  std::vector<char> all;
  for (const JointDescription& j : d.joints)
    all.push_back(visit_every(j.kind, 0, [&](auto joint) { return joint.pose_tells_turns(j.constants); }));
  return all;
}
}  // namespace

Variants::Variants(const Mechanism& first)
    : reference_(new Mechanism(first, first.description())),
      massless_(first.massless()),
      has_mass_(first.mass() > 0.0),
      decisions_(reference_->decisions_),
      advancing_(advancing(reference_->description_)),
      lacks_inertia_(first.tree().nv) {
  list();
  has_forces_.resize(reference_->loop_motions_.size());
}

template <class T> void Variants::part(const T* from, std::size_t count) {
  parts_.push_back({reinterpret_cast<const char*>(from), count * sizeof(T), bytes_});
  bytes_ += VariantNumbers::lines(count * sizeof(T));
}

void Variants::number(const double* from, int count) {
  if (count <= 0) return;
  const std::size_t place = place_of(from);
  if (place == bytes_) throw std::logic_error("a number of variants is in none of the arrays of Variants::list");
  all_.push_back({from, count, place, reader_});
}
void Variants::number(const Link& b) {
  number(b.X_tree), number(&b.inertia.m, 1), number(b.inertia.h.data(), 3), number(&b.euler.xx, 6), number(b.constants.number, 9);
  const VariantNumbers::Reader before = reader_;
  reader_ = VariantNumbers::recursions;  // inverse dynamics reads the Euler tensor instead
  number(&b.inertia.I.xx, 6);
  reader_ = before;
}
void Variants::number(const Constraint& c) {
  number(c.X_parent), number(c.X_child), number(c.R_described.data(), 9);
  visit_constraint(const_cast<AnyConstraint&>(c.kind), [&](auto& kind) {
    if constexpr (std::is_same_v<decltype(kind), LoopJoint&>) number(kind.constants.number, 9);
    kind.fields([&](const char*, auto& x) {
      if constexpr (std::is_same_v<decltype(x), double&>) number(&x, 1);
    });
  });
}

std::size_t Variants::place_of(const void* from) const {
  const char* address = static_cast<const char*>(from);
  for (const Part& p : parts_)
    if (p.from <= address && address < p.from + p.bytes) return p.at + static_cast<std::size_t>(address - p.from);
  return bytes_;
}

void Variants::keep_pointer(const void* at, const void* to) {
  if (const std::size_t place = place_of(to); place < bytes_) pointers_.push_back({place_of(at), place});
}

/// Record the pointers of a tree that refer to copied arrays.
void Variants::point(Tree& t) {
  keep_pointer(&t.link, t.link), keep_pointer(&t.passive, t.passive), keep_pointer(&t.unit, t.unit);
  keep_pointer(&t.per_unit_square, t.per_unit_square), keep_pointer(&t.body, t.body), keep_pointer(&t.frame, t.frame);
  keep_pointer(&t.spring, t.spring), keep_pointer(&t.loop_motion, t.loop_motion);
  Loops& loops = t.loops;
  keep_pointer(&loops.constraint, loops.constraint), keep_pointer(&loops.motion, loops.motion);
  keep_pointer(&loops.rotor, loops.rotor), keep_pointer(&loops.motor_unit, loops.motor_unit);
  keep_pointer(&loops.substructures, loops.substructures);
}

/// List all arrays, numbers and pointers of the tree. An array that is added to the tree must be added here too; otherwise variants would not have
/// it.
void Variants::list() {
  Mechanism& m = *reference_;
  SubstructuredMechanism* pieces = m.pieces_.get();
  const auto constraints = [](auto& list) { return std::make_pair(list.data(), static_cast<std::size_t>(list.size())); };
  const auto [tied, ties] = constraints(m.constraints_);
  part(&m.tree_, 1), parts(m.links_), parts(m.passive_terms_), parts(m.unit_), parts(m.per_unit_square_);
  part(tied, ties), parts(m.motions_), parts(m.rotor_), parts(m.motor_unit_);
  parts(m.bodies_), parts(m.springs_), parts(m.loop_motions_), parts(m.frames_);
  if (pieces) {
    part(&pieces->view_, 1), parts(pieces->links_), parts(pieces->passive_terms_), parts(pieces->unit_);
    parts(pieces->per_unit_square_), parts(pieces->compliance_), parts(pieces->lacking_);
    part(pieces->constraints_.data(), static_cast<std::size_t>(pieces->constraints_.size()));
  }

  number(m.tree_.gravity.data(), 3), numbers(m.links_), numbers(m.passive_terms_);
  for (const PointSpring& s : m.springs_)
    number(s.point[0].data(), 3), number(s.point[1].data(), 3), number(&s.stiffness, PointSpring::numbers);
  for (const LoopMotion& j : m.loop_motions_) {
    number(j.constants.number, 9), number(j.X[0]), number(j.X[1]);
    for (int k = 0; k < j.nv; ++k) number(j.terms[k]);
  }
  reader_ = VariantNumbers::recursions;
  sizes(m.tree_), numbers(m.unit_), numbers(m.per_unit_square_);
  for (std::size_t i = 0; i < ties; ++i) number(tied[i]);
  numbers(m.motions_), numbers(m.rotor_), numbers(m.motor_unit_);
  point(m.tree_);
  if (pieces) {
    number(pieces->view_.tree.gravity.data(), 3), sizes(pieces->view_.tree), numbers(pieces->links_),
        numbers(pieces->passive_terms_), numbers(pieces->unit_);
    numbers(pieces->per_unit_square_), numbers(pieces->compliance_), numbers(pieces->lacking_);
    for (int i = 0; i < pieces->constraints_.size(); ++i) number(pieces->constraints_[i]);
    point(pieces->view_.tree);
    keep_pointer(&pieces->view_.compliance, pieces->view_.compliance);
    keep_pointer(&pieces->view_.lacking, pieces->view_.lacking);
  }
  reader_ = VariantNumbers::bodies;
  for (const Link& b : m.links_) number(b.R_joint.data(), 9);
  for (const Body& b : m.bodies_) number(b.X), number(b.X_joint), number(b.inertia), number(b.X_before);
  for (const auto& f : m.frames_) number(f.X);
}

void Variants::add(const Mechanism& variant) {
  variant.require_to_vary_from(*reference_);
  reference_->description_ = variant.description_, reference_->description_.check_interrupt = nullptr;
  add();
}

void Variants::add() {
  Mechanism& m = *reference_;
  m.bake();
  if (m.pieces_) m.pieces_->take_numbers(m.tree_);
  m.require_same_decisions(decisions_);
  const std::vector<char> advance = advancing(m.description_);
  if (const auto [a, b] = std::mismatch(advance.begin(), advance.end(), advancing_.begin()); a != advance.end())
    throw ModelError("joint '" + m.description_.joints[static_cast<std::size_t>(a - advance.begin())].name +
                     "': the pitch must be nonzero in all variants, or zero in all");
  if (m.massless_ != massless_ || (m.mass_ > 0.0) != has_mass_)
    throw ModelError(
        "all variants must have mass in the same bodies, and inertia along the same joints; this variant differs: build a new "
        "mechanism");

  if (count_ == 0) lacks_inertia_ = m.lacks_inertia_;
  for (int k = 0; k < m.tree_.nv; ++k)
    if (m.lacks_inertia_[k] != lacks_inertia_[k])
      throw ModelError("the subtree of joint '" + joint_of(k) +
                       "' has negligible inertia, or negligible mass relative to the heaviest body, in some variants only: "
                       "evaluate these separately");
  now_.clear();
  for (const Numbers& n : all_) now_.insert(now_.end(), n.from, n.from + n.count);
  if (count_ == 0) first_ = now_, is_listed_.assign(now_.size(), 0);
  const std::size_t before = differs_.size();
  for (std::size_t k = 0; k < now_.size(); ++k)
    if (now_[k] != first_[k] && !is_listed_[k]) differs_.push_back(static_cast<int>(k)), is_listed_[k] = 1;
  // new columns: in all previous variants, these numbers have the values of the first variant
  if (const std::size_t n = differs_.size(); n != before) {
    std::vector<double> wider(static_cast<std::size_t>(count_) * n);
    for (std::int64_t i = 0; i < count_; ++i) {
      double* row = wider.data() + static_cast<std::size_t>(i) * n;
      std::copy_n(rows_.data() + static_cast<std::size_t>(i) * before, before, row);
      for (std::size_t k = before; k < n; ++k) row[k] = first_[differs_[k]];
    }
    rows_ = std::move(wider);
  }
  for (const int k : differs_) rows_.push_back(now_[k]);
  flags_.add(m.tree_);
  if (m.pieces_) flags_of_pieces_.add(m.pieces_->view_.tree);
  for (std::size_t i = 0; i < has_forces_.size(); ++i) has_forces_[i] |= m.loop_motions_[i].has_forces;
  ++count_;
}

void Variants::finish() {
  Mechanism& m = *reference_;
  flags_.give(m.tree_);
  const bool lacks = std::find(m.lacks_inertia_.begin(), m.lacks_inertia_.end(), 1) != m.lacks_inertia_.end();
  m.tree_.lacks_inertia = lacks ? m.lacks_inertia_.data() : nullptr;
  for (std::size_t i = 0; i < has_forces_.size(); ++i) m.loop_motions_[i].has_forces = has_forces_[i];
  if (m.pieces_) m.pieces_->take_numbers(m.tree_), flags_of_pieces_.give(m.pieces_->view_.tree);
  block_.resize(bytes_);
  for (const Part& p : parts_)
    if (p.bytes) std::memcpy(block_.data() + p.at, p.from, p.bytes);
  for (const Numbers& n : all_)
    for (int k = 0; k < n.count; ++k) place_.push_back(n.at + static_cast<std::size_t>(k) * sizeof(double));
  group_values();
  view_.block = block_.data(), view_.bytes = bytes_;
  view_.pointers = static_cast<int>(pointers_.size()), view_.pointer = pointers_.data();
  view_.numbers = static_cast<int>(place_.size()), view_.number = place_.data();
  view_.frames = place_of(m.frames_.data()), view_.pieces = m.pieces_ ? place_of(&m.pieces_->view_) : 0;
  is_listed_.clear(), first_.clear(), now_.clear();
}

/// Return the name of the joint with velocity k.
std::string Variants::joint_of(int k) const {
  for (std::size_t j = 0; j < reference_->joints_.size(); ++j) {
    const Mechanism::PlacedJoint& placed = reference_->joints_[j];
    if (!placed.closes_a_loop && placed.iv <= k && k < placed.iv + placed.nv) return reference_->description_.joints[j].name;
  }
  return {};
}

double Variants::number_of(std::int64_t i, const double& number) const {
  const auto at = std::find(at_.begin(), at_.end(), place_of(&number));
  return at == at_.end() ? number : *view_.value(i, static_cast<int>(at - at_.begin()));
}

/// Store the values that differ, contiguous for each group. The last group is padded with copies of the last variant.
void Variants::group_values() {
  std::vector<VariantNumbers::Reader> reader;
  for (const Numbers& n : all_) reader.insert(reader.end(), static_cast<std::size_t>(n.count), n.reader);
  const std::size_t n = differs_.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::make_pair(reader[differs_[a]], differs_[a]) < std::make_pair(reader[differs_[b]], differs_[b]);
  });
  const std::int64_t group = VariantNumbers::group, groups = (count_ + group - 1) / group;
  const std::size_t numbers = static_cast<std::size_t>(groups * group) * n;
  values_.reset(static_cast<double*>(::operator new(numbers * sizeof(double), std::align_val_t{VariantNumbers::line})));
  double* to = values_.get();
  for (std::int64_t g = 0; g < groups; ++g)
    for (const std::size_t k : order)
      for (std::int64_t l = 0; l < group; ++l)
        *to++ = rows_[static_cast<std::size_t>(std::min(g * group + l, count_ - 1)) * n + k];
  for (const std::size_t k : order) {
    at_.push_back(place_[differs_[k]]);
    for (int r = reader[differs_[k]]; r <= VariantNumbers::bodies; ++r) ++view_.read_by[r];
  }
  view_.differing = static_cast<int>(n), view_.differs = at_.data(), view_.values = values_.get();
  rows_ = {};
}

}  // namespace sarrus
