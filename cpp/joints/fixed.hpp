#pragma once
#include "closing_rows.hpp"

namespace sarrus {

/// Fixed joint (weld). The tree does not contain it, because its two bodies are merged when the mechanism is built.
struct Fixed : JointDefaults, UnitSubspace<>, VectorCoordinates<0> {
  static constexpr const char* name = "Fixed";
  static constexpr CoordinateList coordinates = {}, velocities = {};
  static constexpr bool its_own_reverse = true;
  template <class T> static Transform<T> transform(const Coordinates<T>&) { return Transform<T>::identity(); }
  template <class T> static void close(const JointNumbers<T>&, const Transform<T>& X, const Motion<T>&, ClosingJoint<T>& out) {
    close_components(free_components, X, Transform<T>::identity(), out);
  }
  template <class T> static void read(const JointNumbers<T>&, const Transform<T>&, const T*, T*) {}
};

}  // namespace sarrus
