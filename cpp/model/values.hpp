// Conversion and checks of values from users: numbers, axes, placements, inertias and time functions. Errors show a value as it was passed.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "../constraints/law.hpp"
#include "../spatial/inertia.hpp"
#include "value.hpp"

namespace sarrus::model {

using Point = std::array<double, 3>;
inline Vec3<double> vector(const Point& p) { return vec3(p[0], p[1], p[2]); }

constexpr double largest = 1e100;  // distance [m] whose square does not overflow

/// Read numbers in nested lists of any depth; nullopt if some item is not a number, or if lists have unequal lengths.
struct NumberArray {
  std::vector<std::size_t> shape;
  std::vector<double> numbers;
};
std::optional<NumberArray> numbers_of(const Value& value);

/// Read a unit vector: "x", "-z" or three numbers. A vector that already has unit norm is not changed.
Vec3<double> unit_axis(const Value& axis);

/// Convert three or four numbers, or text such as "#4477aa", to red, green, blue and opacity from 0 to 1; nullopt for anything else.
std::optional<std::array<double, 4>> color(const Value& value);
extern const char* const expected_color;

/// Return the rotation nearest to R; R must have at least four correct digits.
Mat3<double> rotation(const std::string& name, const Mat3<double>& R);

/// Inertia from a mass [kg], the centre of mass [m], and the inertia tensor about the centre of mass [kg m2], all in the body's frame.
struct Inertia {
  double mass = 0.0;
  Vec3<double> com = zero3<double>();
  Mat3<double> about_com = Mat3<double>::Zero();

  /// Return the reason why no body can have this inertia; empty if it is physically possible.
  std::string fault() const;
  sarrus::Inertia<double> about_origin() const;
};
/// Check that a tensor is finite and symmetric. Physical consistency is not required, because many published models of robots violate it.
Inertia checked(Inertia inertia);

/// Names and order of the fields of a time function, a transform and an inertia in documents.
struct LawFields {
  std::vector<double> starts = {0.0};
  std::vector<std::vector<double>> coefficients = {{0.0}};
  std::vector<Point> harmonics;
  double period = 0.0;
  template <class F> void fields(F field) {
    field("starts", starts, {0.0}), field("coefficients", coefficients, {{0.0}}), field("harmonics", harmonics, {});
    field("period", period, 0.0);
  }
  explicit LawFields(const Law& law);
  LawFields() = default;
  Law made() const;
};
struct TransformFields {
  Value rotation = Mat3<double>(Mat3<double>::Identity()), translation = zero3<double>();
  template <class F> void fields(F field) {
    field("rotation", rotation, Mat3<double>(Mat3<double>::Identity())), field("translation", translation, zero3<double>());
  }
  explicit TransformFields(const Transform<double>& X) : rotation(X.R), translation(X.p) {}
  TransformFields() = default;
  Transform<double> made() const;
};
struct InertiaFields {
  double mass = 0.0;
  Value com, about_com;
  template <class F> void fields(F field) { field("mass", mass), field("com", com), field("about_com", about_com); }
  explicit InertiaFields(const Inertia& of) : mass(of.mass), com(of.com), about_com(of.about_com) {}
  InertiaFields() = default;
  Inertia made() const;
};

}  // namespace sarrus::model
