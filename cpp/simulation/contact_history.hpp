// Points of rigid contact along a run, from the internal states that its steps store.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "../contact/point.hpp"

namespace sarrus {

/// A RigidContact of a run: its plane, and the index and the number of its states in z (../elements/rigid_contact.hpp).
struct PlaneContact {
  Vec3<double> normal;  // unit vector in the axes of the plane's frame
  double radius;
  int first, states;
};
/// Contacts of shapes: index of their states in z, largest number of points, and number of values of each point (../elements/collision_contacts.hpp).
struct ShapePoints {
  int first, kept, width;
};

/// Active points in the order of the samples. Position, force and moment on the first body are in the world.
struct ContactHistory {
  std::vector<std::int64_t> sample, id;  // id: as in contact/point.hpp; -1 - k for plane k
  std::vector<double> position, force, moment;  // (points, 3)
  std::vector<double> natural_map;  // residual of the contact conditions (samples)
  std::int64_t left_out = 0;  // active points that were not stored

  void add(std::int64_t at, std::int64_t name, const Vec3<double>& p, const Vec3<double>& f, const Vec3<double>& m) {
    sample.push_back(at), id.push_back(name);
    position.insert(position.end(), p.data(), p.data() + 3), force.insert(force.end(), f.data(), f.data() + 3);
    moment.insert(moment.end(), m.data(), m.data() + 3);
  }
};

/// Return the contact points at samples q (samples, nq) and z (samples, nz). pose(k, on, q): the pose (4 x 4, row-major) of plane k, or of its point.
template <class Pose>
ContactHistory contact_history(std::int64_t samples, const double* q, int nq, const double* z, int nz,
                               const std::optional<ShapePoints>& shapes, const std::vector<PlaneContact>& planes, Pose&& pose) {
  ContactHistory all;
  const Vec3<double> none = vec3<double>(0.0, 0.0, 0.0);
  for (std::int64_t i = 0; i < samples; ++i, q += nq, z += nz) {
    double residual = 0.0;
    for (std::size_t k = 0; k < planes.size(); ++k) {
      const PlaneContact& plane = planes[k];
      const double* state = z + plane.first;
      residual = std::max(residual, state[3]);
      if (!(state[0] > 0.0)) continue;
      const std::array<double, 16> on = pose(k, true, q), at = pose(k, false, q);
      const auto in_world = [&](const Vec3<double>& x) {
        return vec3<double>(on[0] * x(0) + on[1] * x(1) + on[2] * x(2), on[4] * x(0) + on[5] * x(1) + on[6] * x(2),
                            on[8] * x(0) + on[9] * x(1) + on[10] * x(2));
      };
      const Mat3<double> axes = contact_axes(in_world(plane.normal));
      const Vec3<double> place = vec3<double>(at[3], at[7], at[11]) - Vec3<double>(axes.row(0)) * plane.radius;
      all.add(i, -1 - static_cast<std::int64_t>(k), place, transpose_times(axes, Vec3<double>(state)),
              plane.states > 4 ? transpose_times(axes, Vec3<double>(state + 4)) : none);
    }
    if (shapes) {
      const double *state = z + shapes->first, *point = state + values_before_points;
      const int pressing = static_cast<int>(state[1]);
      residual = std::max(residual, state[0]);
      all.left_out += std::max(pressing - shapes->kept, 0);
      for (int k = 0; k < std::min(pressing, shapes->kept); ++k, point += shapes->width)
        all.add(i, static_cast<std::int64_t>(point[0]), Vec3<double>(point + 4), Vec3<double>(point + 1),
                shapes->width > 7 ? Vec3<double>(point + 7) : none);
    }
    all.natural_map.push_back(residual);
  }
  return all;
}

}  // namespace sarrus
