#include "contacts.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace sarrus::model {
namespace {

using Ends = std::pair<std::string, std::string>;
Ends ends(std::string first, std::string second) {
  if (second < first) std::swap(first, second);
  return {std::move(first), std::move(second)};
}

/// Bodies that are welded to each other, by the name of one of them.
class Pieces {
 public:
  explicit Pieces(const std::vector<Joint>& joints) {
    for (const Joint& joint : joints)
      if (joint.joint.kind == JointKind::fixed && joint.laws.empty()) {
        Ends both{root(joint.parent), root(joint.child)};
        if (both.second == "ground") std::swap(both.first, both.second);
        if (both.first != both.second) part_of_[both.second] = both.first;
      }
  }
  std::string root(std::string body) const {
    for (auto at = part_of_.find(body); at != part_of_.end(); at = part_of_.find(body)) body = at->second;
    return body;
  }

 private:
  std::map<std::string, std::string> part_of_;
};

/// Return the index of the setting of two shapes; a setting of shapes takes precedence over a setting of their groups. -1: there is none.
int setting_of(const Shape& first, const Shape& second, const std::map<Ends, int>& settings) {
  for (const std::optional<std::string>& a : {std::optional(first.name), first.group})
    for (const std::optional<std::string>& b : {std::optional(second.name), second.group})
      if (const auto at = a && b ? settings.find(ends(*a, *b)) : settings.end(); at != settings.end()) return at->second;
  return -1;
}

/// Return the coefficient of a pair: that of its setting, or else the geometric mean of the shapes' coefficients.
double coefficient(std::optional<double> Coefficients::* field, const Coefficients* setting, const Shape& a, const Shape& b,
                   double otherwise) {
  if (setting && setting->*field) return *(setting->*field);
  const std::optional<double>&x = a.*field, &y = b.*field;
  if (!x && !y) return otherwise;
  return std::sqrt((x ? *x : *y) * (y ? *y : *x));
}

bool passes_by(const ContactShape& mesh, const ContactShape& other) {
  return std::holds_alternative<Mesh>(mesh) && !std::holds_alternative<Plane>(other);
}

}  // namespace

std::vector<TouchingPair> touching_pairs(const Description& d) {
  const Pieces pieces(d.joints);
  std::set<Ends> joined;
  for (const Joint& joint : d.joints) {
    const Ends both = ends(pieces.root(joint.parent), pieces.root(joint.child));
    if (both.first != "ground" && both.second != "ground") joined.insert(both);
  }
  std::map<Ends, int> settings;
  for (std::size_t k = 0; k < d.contacts.size(); ++k)
    settings[ends(d.contacts[k].first, d.contacts[k].second)] = static_cast<int>(k);

  std::vector<TouchingPair> pairs;
  for (std::size_t i = 0; i < d.shapes.size(); ++i)
    for (std::size_t j = i + 1; j < d.shapes.size(); ++j) {
      const Shape &a = d.shapes[i], &b = d.shapes[j];
      if (a.body == b.body) continue;
      const int k = setting_of(a, b, settings);
      const Contact* setting = k < 0 ? nullptr : &d.contacts[static_cast<std::size_t>(k)];
      const Ends both = ends(pieces.root(a.body), pieces.root(b.body));
      const bool touch = setting ? setting->touching
                                 : both.first != both.second && !joined.count(both) && !passes_by(a.shape, b.shape) &&
                                       !passes_by(b.shape, a.shape);
      if (!touch) continue;
      const auto pair_value = [&](std::optional<double> Coefficients::* field, double otherwise) {
        return coefficient(field, setting, a, b, otherwise);
      };
      pairs.push_back({static_cast<int>(i), static_cast<int>(j), pair_value(&Coefficients::friction, 1.0),
                       pair_value(&Coefficients::restitution, 0.0), pair_value(&Coefficients::torsional_friction, 0.0),
                       pair_value(&Coefficients::rolling_friction, 0.0), k});
    }
  return pairs;
}

}  // namespace sarrus::model
