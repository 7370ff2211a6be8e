// Bindings of the functions of spatial/conversions.hpp for float64 arrays; each function is applied to all items along the leading axes.
// sarrus.spatial adds checks and types.
#include "spatial.hpp"

#include <pybind11/numpy.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../spatial/conversions.hpp"
#include "../spatial/spin.hpp"

namespace sarrus::bindings {
namespace {

namespace py = pybind11;
using Array = py::array_t<double, py::array::c_style | py::array::forcecast>;
using Sizes = std::vector<py::ssize_t>;

py::ssize_t count(const Sizes& shape) {
  py::ssize_t n = 1;
  for (const auto k : shape) n *= k;
  return n;
}
Sizes shape_of(const Array& x) { return {x.shape(), x.shape() + x.ndim()}; }

/// Return the leading axes of x; the remaining axes must be those of one item.
Sizes leading(const char* name, const Array& x, const Sizes& item) {
  const Sizes shape = shape_of(x);
  const auto axes = static_cast<std::ptrdiff_t>(shape.size()) - static_cast<std::ptrdiff_t>(item.size());
  if (axes < 0 || !std::equal(item.begin(), item.end(), shape.begin() + axes)) {
    std::string expected, got;
    for (const auto k : item) expected += ", " + std::to_string(k);
    for (const auto k : shape) got += (got.empty() ? "" : ", ") + std::to_string(k);
    throw py::value_error(std::string(name) + " has shape (" + got + "); it must be (..." + expected + ")");
  }
  return {shape.begin(), shape.begin() + axes};
}

/// Define name(x), which calls f(item of x, item of the result) for each item.
template <class F> void map(py::module_& m, const char* name, const char* argument, const Sizes& item, const Sizes& result, F f,
                            const char* doc) {
  m.def(
      name,
      [=](const Array& x) {
        Sizes shape = leading(argument, x, item);
        const auto n = count(shape), in = count(item), out = count(result);
        shape.insert(shape.end(), result.begin(), result.end());
        Array y(shape);
        const double* from = x.data();
        double* to = y.mutable_data();
        for (py::ssize_t k = 0; k < n; ++k) f(from + k * in, to + k * out);
        return y;
      },
      py::arg(argument), doc);
}

/// Define name(x, y) for items of x and y with the same leading axes.
template <class F>
void map(py::module_& m, const char* name, const char* first, const Sizes& item1, const char* second, const Sizes& item2,
         const Sizes& result, F f, const char* doc) {
  m.def(
      name,
      [=](const Array& x, const Array& y) {
        Sizes shape = leading(first, x, item1);
        if (leading(second, y, item2) != shape)
          throw py::value_error(std::string(first) + " and " + second + " differ in their leading axes");
        const auto n = count(shape), in1 = count(item1), in2 = count(item2), out = count(result);
        shape.insert(shape.end(), result.begin(), result.end());
        Array z(shape);
        const double *from1 = x.data(), *from2 = y.data();
        double* to = z.mutable_data();
        for (py::ssize_t k = 0; k < n; ++k) f(from1 + k * in1, from2 + k * in2, to + k * out);
        return z;
      },
      py::arg(first), py::arg(second), doc);
}

// row-major, as in NumPy
Vec3<double> load_vector(const double* x) { return vec3(x[0], x[1], x[2]); }
Mat3<double> load_matrix(const double* x) {
  Mat3<double> A;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) A(i, j) = x[3 * i + j];
  return A;
}
Sym3<double> load_symmetric(const double* x) { return {x[0], x[1], x[2], x[4], x[5], x[8]}; }
Transform<double> load_transform(const double* x) {
  Transform<double> X;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) X.R(i, j) = x[4 * i + j];
    X.p(i) = x[4 * i + 3];
  }
  return X;
}
/// Read an inertia [m, m c, Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin].
Inertia<double> load_inertia(const double* x) { return {x[0], vec3(x[1], x[2], x[3]), {x[4], x[5], x[7], x[6], x[8], x[9]}}; }

template <int n> void store_matrix(const Eigen::Matrix<double, n, n>& A, double* out) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) out[n * i + j] = A(i, j) + 0.0;  // convert -0 to 0
}
void store_vector(const Vec3<double>& v, double* out) { out[0] = v(0), out[1] = v(1), out[2] = v(2); }
void store_transform(const Transform<double>& X, double* out) {
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) out[4 * i + j] = X.R(i, j);
    out[4 * i + 3] = X.p(i), out[12 + i] = 0.0;
  }
  out[15] = 1.0;
}

using In = const double*;
using Out = double*;
const Sizes three{3}, four{4}, six{6}, ten{10}, matrix{3, 3}, homogeneous{4, 4}, spatial{6, 6};

void bind_rotations(py::module_& m) {
  map(
      m, "rotation_from_quaternion", "quaternion", four, matrix,
      [](In x, Out y) { store_matrix(rotation(Quaternion<double>::load(x)), y); },
      "(..., 4) x, y, z, w of any length to R (..., 3, 3).");
  map(
      m, "quaternion_from_rotation", "rotation", matrix, four, [](In x, Out y) { quaternion(load_matrix(x)).store(y); },
      "R (..., 3, 3) to (..., 4) x, y, z, w, w >= 0.");
  map(
      m, "rotation_from_rpy", "rpy", three, matrix, [](In x, Out y) { store_matrix(rotation_from_rpy(load_vector(x)), y); },
      "(..., 3) to Rz(yaw) Ry(pitch) Rx(roll) (..., 3, 3).");
  map(
      m, "rpy_from_rotation", "rotation", matrix, three, [](In x, Out y) { store_vector(rpy(load_matrix(x)), y); },
      "R (..., 3, 3) to roll, pitch, yaw (..., 3); yaw is 0 in gimbal lock.");
  map(
      m, "nearest_rotation", "rotation", matrix, matrix, [](In x, Out y) { store_matrix(nearest_rotation(load_matrix(x)), y); },
      "The rotation nearest to a matrix (..., 3, 3) that is nearly one.");
  map(
      m, "exp_rotation", "vector", three, matrix, [](In x, Out y) { store_matrix(rotation(exp(load_vector(x))), y); },
      "Rotation vector (..., 3) to R (..., 3, 3).");
  map(
      m, "log_rotation", "rotation", matrix, three, [](In x, Out y) { store_vector(log(load_matrix(x)), y); },
      "R (..., 3, 3) to the rotation vector (..., 3), at most pi long.");
}

void bind_motions(py::module_& m) {
  map(
      m, "exp_pose", "motion", six, homogeneous, [](In x, Out y) { store_transform(transform(exp(load_motion(x))), y); },
      "Pose (..., 4, 4) reached in unit time at a constant motion (..., 6).");
  map(
      m, "log_pose", "pose", homogeneous, six, [](In x, Out y) { store(log(load_transform(x)), y); },
      "Motion (..., 6) that reaches the pose (..., 4, 4) in unit time.");
  map(
      m, "motion_matrix", "pose", homogeneous, spatial, [](In x, Out y) { store_matrix(motion_matrix(load_transform(x)), y); },
      "Pose (..., 4, 4) of B in A to the (..., 6, 6) from motions in B to motions in A.");
  map(
      m, "force_matrix", "pose", homogeneous, spatial, [](In x, Out y) { store_matrix(force_matrix(load_transform(x)), y); },
      "Pose (..., 4, 4) of B in A to the (..., 6, 6) from forces in B to forces in A.");
  map(
      m, "cross_motion", "v", six, "m", six, six, [](In v, In x, Out y) { store(cross(load_motion(v), load_motion(x)), y); },
      "v x m (..., 6).");
  map(
      m, "cross_force", "v", six, "f", six, six, [](In v, In x, Out y) { store(cross(load_motion(v), load_force(x)), y); },
      "v x* f (..., 6).");
}

void bind_jacobians(py::module_& m) {
  map(m, "ad", "v", six, spatial, [](In x, Out y) { store_matrix(ad(load_motion(x)), y); }, "v x as a matrix (..., 6, 6).");
  map(
      m, "ad_dual", "v", six, spatial, [](In x, Out y) { store_matrix(ad_dual(load_motion(x)), y); },
      "v x* as a matrix (..., 6, 6).");
  map(
      m, "left_jacobian_rotation", "vector", three, matrix, [](In x, Out y) { store_matrix(left_jacobian(load_vector(x)), y); },
      "J_l of a rotation vector (..., 3).");
  map(
      m, "left_jacobian_pose", "motion", six, spatial, [](In x, Out y) { store_matrix(left_jacobian(load_motion(x)), y); },
      "J_l of a motion (..., 6).");
  map(
      m, "left_jacobian_inverse_rotation", "vector", three, matrix,
      [](In x, Out y) { store_matrix(left_jacobian_inverse(load_vector(x)), y); }, "Its inverse.");
  map(
      m, "left_jacobian_inverse_pose", "motion", six, spatial,
      [](In x, Out y) { store_matrix(left_jacobian_inverse(load_motion(x)), y); }, "Its inverse.");
}

void bind_spins(py::module_& m) {
  map(
      m, "spin", "x", three, "derivatives", six, six, [](In x, In y, Out w) { spin(x, y, y + 3, w, w + 3); },
      "Rotation vectors (..., 3) and [rate; second derivative] (..., 6) to the angular velocity and acceleration of exp(x) in "
      "the turned axes.");
}

void bind_product_of_exponentials(py::module_& m) {
  m.def(
      "product_of_exponentials",
      [](const Array& screws, const Array& q) {
        const py::ssize_t n = q.ndim() ? q.shape(q.ndim() - 1) : 0;
        Sizes poses = leading("screws", screws, {n, 6}), columns = poses;
        if (leading("q", q, {n}) != poses) throw py::value_error("screws and q differ in their leading axes");
        const auto states = count(poses);
        poses.insert(poses.end(), {4, 4}), columns.insert(columns.end(), {6, n});
        Array X(poses), J(columns);
        const double *screw = screws.data(), *angle = q.data();
        double *x = X.mutable_data(), *j = J.mutable_data();
        for (py::ssize_t s = 0; s < states; ++s, screw += 6 * n, angle += n, x += 16, j += 6 * n) {
          const auto column = [&](int k, const Transform<double>& before) {
            double moved[6];
            store(before.to_parent(load_motion(screw + 6 * k)), moved);
            for (int r = 0; r < 6; ++r) j[r * n + k] = moved[r];
          };
          store_transform(product_of_exponentials(static_cast<int>(n), screw, angle, column), x);
        }
        return py::make_tuple(X, J);
      },
      py::arg("screws"), py::arg("q"),
      "Screws (..., n, 6) and coordinates (..., n) to the product (..., 4, 4) and its spatial Jacobian (..., 6, n).");
}

void bind_inertias(py::module_& m) {
  map(
      m, "euler_tensor", "inertia", matrix, matrix,
      [](In x, Out y) { store_matrix(euler_tensor(load_symmetric(x)).matrix(), y); }, "tr(I)/2 - I (..., 3, 3).");
  map(
      m, "inertia_tensor", "euler_tensor", matrix, matrix,
      [](In x, Out y) { store_matrix(inertia_tensor(load_symmetric(x)).matrix(), y); }, "tr(J) - J (..., 3, 3).");
  map(
      m, "parallel_axes", "mass_and_offset", four, "about_com", matrix, matrix,
      [](In x, In I, Out y) { store_matrix(parallel_axes(x[0], load_vector(x + 1), load_symmetric(I)).matrix(), y); },
      "[mass, centre of mass] (..., 4) and the tensor about it (..., 3, 3) to the tensor about the origin.");
  map(
      m, "inertia_matrix", "parameters", ten, spatial, [](In x, Out y) { store_matrix(inertia_matrix(load_inertia(x)), y); },
      "Ten parameters to the spatial inertia (..., 6, 6).");
  map(
      m, "pseudo_inertia", "parameters", ten, homogeneous, [](In x, Out y) { store_matrix(pseudo_inertia(load_inertia(x)), y); },
      "Ten parameters to the pseudo-inertia (..., 4, 4).");
  map(
      m, "principal_moments", "inertia", matrix, three,
      [](In x, Out y) { store_vector(principal_moments(load_symmetric(x)), y); }, "Eigenvalues (..., 3), ascending.");
  m.def(
      "is_physical",
      [](double mass, const Array& about_com, double tolerance) {
        if (!leading("about_com", about_com, {3, 3}).empty()) throw py::value_error("about_com must be one tensor (3, 3)");
        return is_physical(mass, load_symmetric(about_com.data()), tolerance);
      },
      py::arg("mass"), py::arg("about_com"), py::arg("tolerance"),
      "True if a body can have this mass and tensor about its centre of mass.");
}

}  // namespace

void bind_spatial(py::module_& m) {
  bind_rotations(m);
  bind_motions(m);
  bind_jacobians(m);
  bind_spins(m);
  bind_product_of_exponentials(m);
  bind_inertias(m);
}

}  // namespace sarrus::bindings
