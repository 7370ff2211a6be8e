// Common signature of all functions of a state: the inputs are constants and rows of scalars, the outputs a row of scalars and a status (one per
// lane). Kernels for one state, kernels for packets of states, and the bindings are all compiled from the list of operations.
#pragma once

#include "../dynamics/kinematics.hpp"
#include "../mechanism/status.hpp"
#include "operation_list.hpp"

namespace sarrus {

/// Arguments of a call: in[k] is the row of input k (null: omitted); the values of wrenches are in `wrench`.
template <class T> struct Call {
  const Tree& tree;
  Arena& arena;
  const Parameters& parameters;
  const T* const* in;
  const ExternalWrench<T>* wrench;
  T* out;

  int wrenches() const { return parameters.wrenches; }
  const Frame& frame() const { return parameters.frame; }
  Kinematics<T> motion(const T* q, const T* v, const T* a, const GroundMotion<T>& ground = {}) const {
    const Kinematics<T> k = Kinematics<T>::over(tree, arena.template take<T>(Kinematics<T>::size(tree)));
    kinematics(tree, arena, q, v, a, k, ground);
    return k;
  }
  /// Return the kinematics in input 0, which an earlier call of the operation `kinematics` computed.
  Kinematics<T> cached_motion() const { return Kinematics<T>::over(tree, const_cast<T*>(in[0])); }
};

template <Operation> struct Kernel;

#define SARRUS_KERNEL(operation, ...)                      \
  template <> struct Kernel<Operation::operation> {        \
    template <class T> static T run(const Call<T>& call) { \
      [[maybe_unused]] const Tree& tree = call.tree;       \
      [[maybe_unused]] Arena& arena = call.arena;          \
      [[maybe_unused]] const T* const* in = call.in;       \
      [[maybe_unused]] T* out = call.out;                  \
      [[maybe_unused]] constexpr const T* none = nullptr;  \
      __VA_ARGS__                                          \
      return T(0.0);                                       \
    }                                                      \
  };

}  // namespace sarrus
