// List of all joints. A new joint needs its own file, and an include and a line here.
#pragma once

#include "cable.hpp"
#include "cylindrical.hpp"
#include "fixed.hpp"
#include "free.hpp"
#include "gimbal.hpp"
#include "helical.hpp"
#include "planar.hpp"
#include "prismatic.hpp"
#include "revolute.hpp"
#include "spherical.hpp"
#include "universal.hpp"

namespace sarrus {

// each kind with its type; if the type depends on the number of velocities, with all types in the order of this number
#define SARRUS_JOINTS(X)                                                      \
  X(fixed, Fixed)                                                             \
  X(revolute, Revolute)                                                       \
  X(prismatic, Prismatic)                                                     \
  X(helical, Helical)                                                         \
  X(cylindrical, Cylindrical)                                                 \
  X(universal, Universal)                                                     \
  X(planar, Planar)                                                           \
  X(spherical, Spherical)                                                     \
  X(free, Free)                                                               \
  X(gimbal, Gimbal<1>, Gimbal<2>, Gimbal<3>, Gimbal<4>, Gimbal<5>, Gimbal<6>) \
  X(cable, Cable)

enum class JointKind : int {
#define SARRUS_KIND(kind, ...) kind,
  SARRUS_JOINTS(SARRUS_KIND)
#undef SARRUS_KIND
      reversed  // a joint of any kind that is described in the opposite direction, from successor to predecessor
};

constexpr JointKind joint_kinds[] = {
#define SARRUS_KIND(kind, ...) JointKind::kind,
    SARRUS_JOINTS(SARRUS_KIND)
#undef SARRUS_KIND
};

}  // namespace sarrus
