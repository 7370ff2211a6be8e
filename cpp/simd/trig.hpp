// Sine and cosine of a packet, without branches: Cody and Waite's reduction by multiples of pi/2, then the minimax polynomials of fdlibm on [-pi/4,
// pi/4]. For |x| < 1.6e6 the result is within 2 ulp of the C library's (tests/core/test_simd.py). For larger angles (a wheel after 260,000
// revolutions) the C library is called, lane by lane.
#pragma once

#include "packet.hpp"

namespace sarrus {

namespace trig {
constexpr double two_over_pi = 6.36619772367581382433e-01;
// 1.5 * 2^52: adding this number to x rounds x to an integer, which is then in the low bits of the sum
constexpr double magic = 6755399441055744.0;
// pi/2 in three parts: 33 bits, 33 bits, and the remaining bits; n * part is exact for n < 2^20
constexpr double pio2_1 = 1.57079632673412561417e+00;
constexpr double pio2_2 = 6.07710050630396597660e-11;
constexpr double pio2_3 = 2.02226624879595063154e-21;
constexpr double limit = 1.6e6;
}  // namespace trig

template <int W, bool Own> inline void sincos(Packet<W, Own> x, Packet<W, Own>& s, Packet<W, Own>& c) {
  using P = Packet<W, Own>;
  using Bits = typename Register<W>::bits;
  using Real = typename Register<W>::real;
  const P shifted = x * P(trig::two_over_pi) + P(trig::magic), n = shifted - P(trig::magic);
  const P r = ((x - n * P(trig::pio2_1)) - n * P(trig::pio2_2)) - n * P(trig::pio2_3), z = r * r;

  const P sin_r = r + r * z *
                          (P(-1.66666666666666324348e-01) +
                           z * (P(8.33333333332248946124e-03) +
                                z * (P(-1.98412698298579493134e-04) +
                                     z * (P(2.75573137070700676789e-06) +
                                          z * (P(-2.50507602534068634195e-08) + z * P(1.58969099521155010221e-10))))));
  const P tail = z * z *
                 (P(4.16666666666666019037e-02) +
                  z * (P(-1.38888888888741095749e-03) +
                       z * (P(2.48015872894767294178e-05) +
                            z * (P(-2.75573143513906633035e-07) +
                                 z * (P(2.08757232129817482790e-09) + z * P(-1.13596475577881948265e-11))))));
  const P half_z = P(0.5) * z, one_less = P(1.0) - half_z;
  const P cos_r = one_less + (((P(1.0) - one_less) - half_z) + tail);

  // quadrant n mod 4: if it is odd, sine and cosine are exchanged; its second bit determines the signs
  const Bits quadrant = (Bits)shifted.lanes, odd = (quadrant & 1) != 0;
  const Real a = odd ? cos_r.lanes : sin_r.lanes, b = odd ? sin_r.lanes : cos_r.lanes;
  s.lanes = (Real)((Bits)a ^ ((quadrant & 2) << 62));
  c.lanes = (Real)((Bits)b ^ (((quadrant + 1) & 2) << 62));

  if (__builtin_expect(any(abs(x) > P(trig::limit)), 0)) {
    s = P::each([&](int i) { return std::sin(x.lanes[i]); });
    c = P::each([&](int i) { return std::cos(x.lanes[i]); });
  }
}

/// Compute sines and cosines of n angles: one by one for packets, two at a time for doubles.
template <class T> inline void sincos(int n, const T* x, T* s, T* c) {
  for (int i = 0; i < n; ++i) sincos(x[i], s[i], c[i]);
}
template <> inline void sincos(int n, const double* x, double* s, double* c) {
  for (int i = 0; i < n; i += 2) {
    const int j = i + 1 < n ? i + 1 : i;  // if the number of angles is odd, both lanes contain the last one
    Packet<2> s2, c2;
    sincos(Packet<2>(Register<2>::real{x[i], x[j]}), s2, c2);
    s[i] = s2.lanes[0], c[i] = c2.lanes[0];
    s[j] = s2.lanes[1], c[j] = c2.lanes[1];
  }
}

}  // namespace sarrus
