// For jax.ffi: rows of states, @lanes@ at a time.
#include <cmath>
#include <cstring>

#include "xla/ffi/api/ffi.h"

namespace {
namespace ffi = xla::ffi;
constexpr int lanes = @lanes@;
typedef double real __attribute__((vector_size(8 * lanes)));
typedef long long flags __attribute__((vector_size(8 * lanes)));

#define EACH_LANE(f) real y; for (int l = 0; l < lanes; ++l) y[l] = f; return y;
inline real sqrt(real x) { EACH_LANE(std::sqrt(x[l])) }
inline real fabs(real x) { return x < 0.0 ? -x : x; }
inline real rint(real x) { EACH_LANE(std::rint(x[l])) }
inline real atan2(real y_, real x) { EACH_LANE(std::atan2(y_[l], x[l])) }

@turn@
/// f of rows of arguments into rows of results, which are no numbers where the status is not 0.
template <int numbers, int arrays, class F>
ffi::Error batch(ffi::RemainingArgs args, ffi::RemainingRets rets, const F& f) {
  const std::size_t in = args.size(), all = in + rets.size();
  struct {
    const double* from;
    double* to;
    std::int64_t size;
  } array[arrays];
  std::int64_t states = 1;
  for (std::size_t k = 0; k < all; ++k) {
    const auto place = [&](auto& b, const double* from, double* to) {
      array[k] = {from, to, b.dimensions().back()};
      states = 1;
      for (std::size_t i = 0; i + 1 < b.dimensions().size(); ++i) states *= b.dimensions()[i];
    };
    if (k < in) {
      auto b = *args.get<ffi::Buffer<ffi::F64>>(k);
      place(b, b.typed_data(), nullptr);
    } else {
      auto b = *rets.get<ffi::Buffer<ffi::F64>>(k - in);
      place(*b, nullptr, b->typed_data());
    }
  }
  real x[numbers];
  for (std::int64_t first = 0; first < states; first += lanes) {
    std::int64_t row[lanes];
    for (int l = 0; l < lanes; ++l) row[l] = first + l < states ? first + l : states - 1;  // the last one again
    real* at = x;
    for (std::size_t k = 0; k < in; at += array[k++].size)
      for (int l = 0; l < lanes; ++l) {
        const double* from = array[k].from + row[l] * array[k].size;
        for (std::int64_t i = 0; i < array[k].size; ++i) at[i][l] = from[i];
      }
    const real status = f(x), none = real{} + std::nan("");
    for (std::size_t k = in; k < all; at += array[k++].size) {
      for (std::int64_t i = 0; i < array[k].size; ++i) at[i] = status != 0.0 ? none : at[i];
      for (int l = 0; l < lanes; ++l) {
        double* to = array[k].to + row[l] * array[k].size;
        for (std::int64_t i = 0; i < array[k].size; ++i) to[i] = at[i][l];
      }
    }
  }
  return ffi::Error::Success();
}

@functions@
}  // namespace

@handlers@
