// Evaluation of an operation for one state, and for many states one by one. For states in lanes see packets.hpp.
#pragma once

#include "call.hpp"
#include "kernels.hpp"

namespace sarrus {

/// Return the external wrenches of a call, with their frames and values.
template <class T>
SARRUS_INLINE ExternalWrench<T>* external_wrenches(const Parameters& p, Arena& arena, const NumbersOf<T>& numbers,
                                                   const T* const* value) {
  auto* external = arena.take<ExternalWrench<T>>(p.wrenches);
  for (int k = 0; k < p.wrenches; ++k)
    external[k] = {p.wrench_frame[k].link, p.wrench_frame[k].body, numbers(p.wrench_frame[k].X), value[k]};
  return external;
}

template <Operation op>
double single_state(const Tree& tree, const Parameters& p, const double* const* in, const double* const* wrench, double* out) {
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  return Kernel<op>::template run<double>({tree, arena, p, in, external_wrenches(p, arena, tree.numbers<double>(), wrench), out});
}

template <Operation op>
void one_by_one(const Tree& tree, const Parameters& p, const Rows& rows, std::int64_t begin, std::int64_t end) {
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  const double** wrench = arena.take<const double*>(p.wrenches);
  for (std::int64_t i = begin; i < end; ++i) {
    const double* in[max_inputs];
    for (int k = 0; k < max_inputs; ++k) in[k] = rows.in[k] ? rows.in[k] + i * rows.in_step[k] : nullptr;
    for (int k = 0; k < p.wrenches; ++k) wrench[k] = rows.wrench[k] + i * rows.wrench_step[k];
    rows.status[i] = static_cast<signed char>(single_state<op>(tree, p, in, wrench, rows.out + i * rows.out_size));
  }
}

}  // namespace sarrus
