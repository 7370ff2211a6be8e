// Scenes of collision shapes from Python. Shapes are tuples (description/contacts.py); contact points are computed for poses of the bodies.
#include "shapes.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>

#include "../contact/scene.hpp"
#include "described.hpp"
#include "gil.hpp"
#include "spatial.hpp"

namespace sarrus::bindings {
namespace {

namespace py = pybind11;
using Numbers = py::array_t<double, py::array::c_style | py::array::forcecast>;

constexpr std::pair<const char*, ShapeKind> kinds[] = {
    {"Sphere", ShapeKind::sphere},     {"Capsule", ShapeKind::capsule},     {"Box", ShapeKind::box},
    {"Cylinder", ShapeKind::cylinder}, {"Ellipsoid", ShapeKind::ellipsoid}, {"Plane", ShapeKind::plane},
    {"Terrain", ShapeKind::terrain},   {"ConvexPoints", ShapeKind::points}};

ShapeKind shape_kind(const std::string& name) {
  for (const auto& [text, kind] : kinds)
    if (name == text) return kind;
  throw py::value_error("no shape is named '" + name + "'");
}

/// Convert (kind, radius, half length, half size (3,), heights (ny, nx) or points (n, 3), spacing (2,), index of the body, placement).
PlacedShape to_shape(const py::tuple& t) {
  Shape s;
  s.kind = shape_kind(t[0].cast<std::string>());
  s.radius = t[1].cast<double>(), s.half = t[2].cast<double>(), s.box = to_vec3(t[3]);
  if (s.kind == ShapeKind::terrain) {
    const auto z = t[4].cast<Numbers>();
    const auto step = t[5].cast<std::pair<double, double>>();
    if (z.ndim() != 2 || z.shape(0) < 2 || z.shape(1) < 2)
      throw py::value_error("heights: expected at least two rows and two columns");
    s.heights = std::make_shared<const Heights>(Heights{static_cast<int>(z.shape(1)), static_cast<int>(z.shape(0)), step.first,
                                                        step.second, std::vector<double>(z.data(), z.data() + z.size())});
  }
  if (s.kind == ShapeKind::points) {
    const auto p = t[4].cast<Numbers>();
    if (p.ndim() != 2 || p.shape(0) < 1 || p.shape(0) > Scene::features || p.shape(1) != 3)
      throw py::value_error("points: expected (n, 3), n at most " + std::to_string(Scene::features));
    std::vector<Vec3<double>> all;
    for (py::ssize_t i = 0; i < p.shape(0); ++i) all.emplace_back(p.data() + 3 * i);
    for (const Vec3<double>& point : all) s.radius = std::max(s.radius, point.norm());
    s.points = std::make_shared<const std::vector<Vec3<double>>>(std::move(all));
  }
  return {s, t[6].cast<int>(), to_transform(t[7])};
}

Numbers pose_of(const Transform<double>& X) {
  Numbers pose({4, 4});
  auto to = pose.mutable_unchecked<2>();
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 3; ++j) to(i, j) = i < 3 ? X.R(i, j) : 0.0;
    to(i, 3) = i < 3 ? X.p(i) : 1.0;
  }
  return pose;
}

/// Convert a Python function f(first pose (4, 4), second pose, within) that returns points (n <= 4, 7): position, normal, distance
/// (description/contacts.py). If it raises, the Python exception remains set and the function is not called again. The GIL must be held when a scene
/// is created or destroyed.
PairFunction to_pair_function(const py::object& f) {
  if (f.is_none()) return nullptr;
  return [f](const Transform<double>& first, const Transform<double>& second, double within) -> std::optional<Manifold<double>> {
    const WithGil gil;
    if (PyErr_Occurred()) return std::nullopt;
    try {
      const auto points = py::cast<Numbers>(call_python(f, py::make_tuple(pose_of(first), pose_of(second), within)));
      Manifold<double> m;
      for (const double* p = points.data(); m.count < points.shape(0); p += 7) {
        m.at[m.count] = {Vec3<double>(p), Vec3<double>(p + 3), p[6]};
        m.feature[m.count] = m.count, ++m.count;
      }
      return m;
    } catch (py::error_already_set& e) {
      e.restore();
    }
    return std::nullopt;
  };
}

}  // namespace

Scene to_scene(const std::vector<py::tuple>& shapes, const std::vector<DescribedPair>& pairs) {
  Scene scene;
  for (const auto& s : shapes) scene.shapes.push_back(to_shape(s));
  for (const auto& [first, second, friction, restitution, torsional, rolling, f] : pairs)
    scene.allow(first, second, friction, restitution, torsional, rolling, to_pair_function(f));
  return scene;
}

namespace {

/// Return the touching points of all states in one list; each point is (state, pair, id, position, normal, distance).
py::tuple touching(const Scene& scene, const Numbers& poses, double within) {
  int links = 0;
  for (const PlacedShape& s : scene.shapes) links = std::max(links, s.link + 1);
  if (poses.ndim() != 4 || poses.shape(1) < links || poses.shape(2) != 4 || poses.shape(3) != 4)
    throw py::value_error("scene: expected poses (states, bodies, 4, 4)");
  Arena& arena = thread_arena();
  const std::vector<double> ahead(scene.shapes.size(), 0.5 * within);  // the search distances of two shapes add up
  std::vector<Transform<double>> at(poses.shape(1));
  std::vector<std::int64_t> names[3];
  std::vector<double> numbers[3];
  const auto X = poses.unchecked<4>();
  for (py::ssize_t state = 0; state < X.shape(0); ++state) {
    for (py::ssize_t b = 0; b < X.shape(1); ++b)
      for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) at[b].R(i, j) = X(state, b, i, j);
        at[b].p(i) = X(state, b, i, 3);
      }
    const Arena::Scope scope(arena);
    const Touching<double> result = scene.touching(at.data(), ahead.data(), arena);
    if (result.failed) throw py::error_already_set();
    for (const auto& point : result) {
      names[0].push_back(state), names[1].push_back(point.pair), names[2].push_back(point.id);
      for (int i = 0; i < 3; ++i) numbers[0].push_back(point.at.position(i)), numbers[1].push_back(point.at.normal(i));
      numbers[2].push_back(point.at.distance);
    }
  }
  const auto listed = [](const auto& x, std::vector<py::ssize_t> shape) {
    return py::array_t<typename std::decay_t<decltype(x)>::value_type>(std::move(shape), x.data());
  };
  const auto n = static_cast<py::ssize_t>(names[0].size());
  return py::make_tuple(listed(names[0], {n}), listed(names[1], {n}), listed(names[2], {n}), listed(numbers[0], {n, 3}),
                        listed(numbers[1], {n, 3}), listed(numbers[2], {n}));
}

}  // namespace

void bind_shapes(py::module_& m) {
  py::class_<Scene>(m, "Scene")
      .def(py::init(&to_scene), py::arg("shapes"), py::arg("pairs"))
      .def("touching", &touching, py::arg("poses"), py::arg("within"));
  m.def(
      "can_touch",
      [](const std::string& first, const std::string& second) { return can_touch(shape_kind(first), shape_kind(second)); },
      py::arg("one"), py::arg("other"));
  m.attr("touching_pairs") = touching_pairs;
}

}  // namespace sarrus::bindings
