#include "values.hpp"

#include <algorithm>
#include <cmath>

#include "../mechanism/errors.hpp"
#include "../spatial/conversions.hpp"
#include "text.hpp"

namespace sarrus::model {
namespace {

bool all_finite(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); });
}

double length_of(double x, double y, double z) {
  return static_cast<double>(
      std::sqrt(static_cast<long double>(x) * x + static_cast<long double>(y) * y + static_cast<long double>(z) * z));
}

/// Read finite numbers of this shape; -0 becomes 0.
std::vector<double> finite_array(const std::string& name, const Value& value, const std::vector<std::size_t>& shape) {
  const auto array = numbers_of(value);
  if (!array) throw ModelError(name + " must be an array " + shape_text(shape) + " of real numbers; got " + shown(value));
  if (array->shape != shape)
    throw ModelError(name + " has shape " + shape_text(array->shape) + "; it must be " + shape_text(shape));
  if (!all_finite(array->numbers)) throw ModelError(name + " = " + shown(value) + " is not finite");
  std::vector<double> numbers = array->numbers;
  for (double& x : numbers) x += 0.0;
  return numbers;
}

Mat3<double> matrix(const std::vector<double>& x) {
  Mat3<double> A;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) A(i, j) = x[static_cast<std::size_t>(3 * i + j)];
  return A;
}
Sym3<double> symmetric(const Mat3<double>& A) { return {A(0, 0), A(0, 1), A(0, 2), A(1, 1), A(1, 2), A(2, 2)}; }

}  // namespace

std::optional<NumberArray> numbers_of(const Value& value) {
  if (value.is_number()) return NumberArray{{}, {value.number()}};
  if (!value.is_list()) return std::nullopt;
  NumberArray all{{value.list().size()}, {}};
  for (const Value& x : value.list()) {
    const auto row = numbers_of(x);
    if (!row) return std::nullopt;
    if (&x == value.list().data()) all.shape.insert(all.shape.end(), row->shape.begin(), row->shape.end());
    if (!std::equal(all.shape.begin() + 1, all.shape.end(), row->shape.begin(), row->shape.end())) return std::nullopt;
    all.numbers.insert(all.numbers.end(), row->numbers.begin(), row->numbers.end());
  }
  return all;
}

Vec3<double> unit_axis(const Value& axis) {
  if (axis.is_text()) {
    const std::string& name = axis.text();
    const std::size_t letter = name.find_first_not_of("+-");
    if (letter == std::string::npos || name.size() > 2 || letter + 1 != name.size() || name[letter] < 'x' || name[letter] > 'z')
      throw ModelError("an axis must be 'x', 'y' or 'z', one of these with a minus, or three numbers; got '" + name + "'");
    return Vec3<double>::Unit(name[letter] - 'x') * (name[0] == '-' ? -1.0 : 1.0) + zero3<double>();
  }
  const auto array = numbers_of(axis);
  if (!array) throw ModelError("an axis must be a name or three numbers; got " + shown(axis));
  if (array->shape != std::vector<std::size_t>{3} || !all_finite(array->numbers))
    throw ModelError("an axis needs three finite numbers; got " + shown(axis));
  Vec3<double> a = vec3(array->numbers[0], array->numbers[1], array->numbers[2]);
  const double most = a.cwiseAbs().maxCoeff();
  if (most < 1e-12) throw ModelError("an axis must be longer than 1e-12; got " + shown(axis));
  if (std::abs(length_of(a(0), a(1), a(2)) - 1.0) > 4e-16) {
    a = a / most;  // scale before squaring, to avoid overflow
    a = a / length_of(a(0), a(1), a(2));
  }
  return a + zero3<double>();  // change -0 to 0, so that equal axes have equal hashes
}

const char* const expected_color = "needs three or four numbers from 0 to 1, or text such as '#4477aa'";

std::optional<std::array<double, 4>> color(const Value& value) {
  std::vector<double> x;
  if (value.is_text()) {
    const std::string digits = value.text().substr(value.text().compare(0, 1, "#") == 0);
    if (digits.size() % 2 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) return std::nullopt;
    for (std::size_t k = 0; k < digits.size(); k += 2) x.push_back(std::stoi(digits.substr(k, 2), nullptr, 16) / 255.0);
  } else if (const auto array = numbers_of(value); array && array->shape.size() == 1) {
    x = array->numbers;
  }
  const bool within = std::all_of(x.begin(), x.end(), [](double each) { return each >= 0.0 && each <= 1.0; });
  if (!within || (x.size() != 3 && x.size() != 4)) return std::nullopt;
  return std::array<double, 4>{x[0], x[1], x[2], x.size() == 4 ? x[3] : 1.0};
}

Mat3<double> rotation(const std::string& name, const Mat3<double>& R) {
  constexpr double four_digits = 2e-4, rounding = 16.0 * 0x1p-52;
  double defect = 0.0;
  for (int i = 0; i < 3; ++i)
    for (int j = i; j < 3; ++j) {
      const double x = R(0, i) * R(0, j) + R(1, i) * R(1, j) + R(2, i) * R(2, j) - (i == j ? 1.0 : 0.0);
      if (!(std::abs(x) <= defect)) defect = std::abs(x);
    }
  if (!(defect <= four_digits)) {
    char off[32];
    std::snprintf(off, sizeof off, "%.2g", defect);
    throw ModelError(name + " = " + shown(R) + " is not a rotation: R^T R differs from the identity by " + off);
  }
  if (dot<double>(R.col(0), cross<double>(R.col(1), R.col(2))) < 0.0)
    throw ModelError(name + " = " + shown(R) + " is a reflection: its determinant is -1; are its axes left-handed?");
  return defect > rounding ? Mat3<double>(nearest_rotation(R) + Mat3<double>::Zero()) : R;
}

std::string Inertia::fault() const {
  constexpr double printed_digits = 1e-5;  // tolerance of the triangle inequality, for inertias that were printed with six digits
  const Sym3<double> I = symmetric(about_com);
  if (is_physical(mass, I, printed_digits)) return {};
  const Vec3<double> principal = principal_moments(I);
  // smaller radii of gyration, below a micron, are rounding errors of a point mass
  if (principal.cwiseAbs().maxCoeff() <= 1e-12 * std::abs(mass)) return {};
  std::vector<std::string> moments;
  for (int k = 0; k < 3; ++k) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", principal(k));
    moments.push_back(text);
  }
  return "no body of " + six_digits(mass) + " kg has principal moments of inertia " + sarrus::joined(moments) +
         " kg m²; the values are kept";
}

sarrus::Inertia<double> Inertia::about_origin() const {
  return {mass, com * mass, parallel_axes<double>(mass, com, symmetric(about_com))};
}

Inertia checked(Inertia b) {
  const Mat3<double>& I = b.about_com;
  const bool finite = std::isfinite(b.mass) && b.com.allFinite() && I.allFinite();
  if (finite && I == I.transpose() && std::isfinite(b.mass * dot(b.com, b.com))) {  // fast path for most inertias
    b.com += zero3<double>(), b.about_com += Mat3<double>::Zero();  // -0 becomes 0
    return b;
  }
  return InertiaFields(b).made();
}

Inertia InertiaFields::made() const {
  Inertia b;
  Mat3<double>& I = b.about_com;
  I = matrix(finite_array("about_com", about_com, {3, 3}));
  const double uneven = (I - I.transpose()).cwiseAbs().maxCoeff();
  if (uneven > 1e-8 * I.cwiseAbs().maxCoeff()) throw ModelError("about_com = " + shown(I) + " is not symmetric");
  b.mass = finite_array("mass", mass, {})[0];
  const std::vector<double> c = finite_array("com", com, {3});
  b.com = vec3(c[0], c[1], c[2]);
  if (!std::isfinite(b.mass * dot(b.com, b.com)))
    throw ModelError("com = " + shown(b.com) + " is so far from the origin that a mass of " + six_digits(b.mass) +
                     " has no finite inertia about the origin");
  if (uneven > 0.0) I = Mat3<double>(0.5 * I + 0.5 * I.transpose());
  return b;
}

LawFields::LawFields(const Law& law)
    : starts(law.start), coefficients(law.start.size()), harmonics(law.harmonic.size() / 3), period(law.period) {
  const auto terms = static_cast<std::ptrdiff_t>(law.coefficient.size() / std::max(starts.size(), std::size_t{1}));
  auto next = law.coefficient.begin();
  for (std::vector<double>& piece : coefficients) piece.assign(next, next + terms), next += terms;
  for (std::size_t k = 0; k < law.harmonic.size(); ++k) harmonics[k / 3][k % 3] = law.harmonic[k];
}

Law LawFields::made() const {
  Law law;
  const auto take = [](const std::vector<double>& from, std::vector<double>& to) {
    to.insert(to.end(), from.begin(), from.end());
  };
  Value::List rows, waves;
  bool even = true;
  for (const std::vector<double>& piece : coefficients)
    rows.push_back(piece), take(piece, law.coefficient), even = even && piece.size() == coefficients[0].size();
  for (const Point& wave : harmonics)
    waves.push_back(Value(vector(wave))), law.harmonic.insert(law.harmonic.end(), wave.begin(), wave.end());
  law.start = starts;
  const auto require = [](const char* name, bool fine, const char* form, const Value& value) {
    if (!fine) throw ModelError(std::string(name) + " must be " + form + " finite numbers; got " + shown(value, true));
  };
  require("starts", all_finite(law.start), "a sequence of", starts);
  require("coefficients", even, "rows of equal length, of", rows);
  require("coefficients", all_finite(law.coefficient), "rows of", rows);
  require("harmonics", all_finite(law.harmonic), "rows of", waves);
  if (starts.empty() || coefficients.size() != starts.size() || law.coefficient.empty()) {
    const std::size_t terms = law.coefficient.empty() ? 0 : coefficients[0].size();
    throw ModelError("a time function needs one start time or more, and one row of coefficients for each; got " +
                     shape_text({terms ? coefficients.size() : 0, terms}) + " coefficients for " + std::to_string(starts.size()) +
                     " starts");
  }
  if (!std::is_sorted(starts.begin(), starts.end()))
    throw ModelError("start times of a time function must not decrease; got " + shown(starts));
  if (!(period >= 0.0 && std::isfinite(period)) || (period > 0.0 && starts.back() > starts[0] + period))
    throw ModelError("period of a time function must not be shorter than its pieces, which begin at " + shown(starts) + "; got " +
                     shown(Value(period)));
  law.period = period;
  return law;
}

Transform<double> TransformFields::made() const {
  const Mat3<double> R = model::rotation("rotation", matrix(finite_array("rotation", rotation, {3, 3})));
  const std::vector<double> p = finite_array("translation", translation, {3});
  return {R, vec3(p[0], p[1], p[2])};
}

}  // namespace sarrus::model
