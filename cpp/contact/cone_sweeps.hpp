// Third stage: sweeps over the contacts (Gauss-Seidel), in which each contact is solved exactly while the impulses of the others are fixed; then
// Newton's method.
#pragma once

#include "cone_interior.hpp"

namespace sarrus {

class ConeSweeps : public ConeInterior {
 public:
  using ConeInterior::ConeInterior;

 protected:
  void swept(double* p) {
    for (int round = 0; round < 20 && !limit_.over(); ++round) {
      for (int i = 0; i < contacts_; ++i) {
        double G[9], w[3];
        for (int r = 0; r < 3; ++r) {
          const double* row = G_ + (3 * i + r) * n_;
          w[r] = w_[3 * i + r] + scalar_product(row, p, n_);
          for (int c = 0; c < 3; ++c) G[3 * r + c] = row[3 * i + c], w[r] -= row[3 * i + c] * p[3 * i + c];
        }
        if (const double floor = floor_of(3 * i); floor > 0.0) {
          p[3 * i] = std::max(floor, -(w[0] + G[1] * p[3 * i + 1] + G[2] * p[3 * i + 2]) / std::max(G[0], 1e-300));
          turn_alone({mu_[i], 3 * i, 3 * i + 1, 2, slipping(i)}, p);
          continue;
        }
        one_contact(G, w, mu_[i], slipping(i), p + 3 * i);
      }
      for (const FrictionDisk* m = moment_; m < moment_ + moments_; ++m) turn_alone(*m, p);
      for (int j = 0, k = ends_at_; k < n_; ++j, ++k) {
        const double u = w_[k] + scalar_product(G_ + k * n_, p, n_), d = G_[k * n_ + k];
        if (d > 0.0) p[k] = std::min(std::max(p[k] - u / d, low_[j]), high_[j]);
      }
      ++iterations_;
      if (natural_map(p) <= tolerance_) return;
    }
    polish(p, 8);
  }

 private:
  /// Solve one contact exactly. It opens, sticks, or slips; if it slips, the ratio of friction and speed is the root of a scalar equation.
  static void one_contact(const double G[9], const double* w, double mu, const double* slips, double* p) {
    p[0] = p[1] = p[2] = 0.0;
    if (w[0] >= 0.0) return;
    if (slips) {
      const double along = G[0] - mu * (G[1] * slips[0] + G[2] * slips[1]);
      if (along > 0.0) p[0] = -w[0] / along, p[1] = -mu * p[0] * slips[0], p[2] = -mu * p[0] * slips[1];
      return;
    }
    double A[9], x[3] = {-w[0], -w[1], -w[2]};
    std::copy(G, G + 9, A);
    if (solve_dense(3, A, x) && x[0] >= 0.0 && length(x + 1) <= mu * x[0]) {
      std::copy(x, x + 3, p);
      return;
    }
    if (G[0] <= 0.0) return;
    const double h[2] = {G[3], G[6]}, b[2] = {w[1] - h[0] * w[0] / G[0], w[2] - h[1] * w[0] / G[0]};
    const double S[3] = {G[4] - h[0] * h[0] / G[0], G[5] - h[0] * h[1] / G[0], G[8] - h[1] * h[1] / G[0]};
    const auto slips_within = [&](double ratio) {
      const double a = S[0] + ratio, c = S[2] + ratio, det = a * c - S[1] * S[1];
      p[1] = (S[1] * b[1] - c * b[0]) / det, p[2] = (S[1] * b[0] - a * b[1]) / det;
      p[0] = -(w[0] + h[0] * p[1] + h[1] * p[2]) / G[0];
      return p[0] > 0.0 && length(p + 1) <= mu * p[0];
    };
    double low = 0.0, high = G[0];
    while (!slips_within(high) && high < 1e12 * G[0]) low = high, high *= 8.0;
    for (int k = 0; k < 60; ++k) {
      const double middle = 0.5 * (low + high);
      (slips_within(middle) ? high : low) = middle;
    }
    slips_within(high);
  }
  /// Solve one moment for a fixed normal impulse. It sticks, or is at its limit; then the ratio of moment and speed is the root of a scalar equation.
  void turn_alone(const FrictionDisk& m, double* p) const {
    const int k = m.first, l = k + m.rows - 1;
    const double most = m.mu * p[m.normal], G[3] = {G_[k * n_ + k], G_[k * n_ + l], G_[l * n_ + l]};
    double w[2];
    for (int r = 0; r < m.rows; ++r) {
      const double* row = G_ + (k + r) * n_;
      w[r] = w_[k + r] + scalar_product(row, p, n_);
      for (int c = k; c <= l; ++c) w[r] -= row[c] * p[c];
    }
    if (m.slips || m.rows == 1) {
      p[k] = m.slips ? -most * m.slips[0] : std::min(std::max(-w[0] / std::max(G[0], 1e-300), -most), most);
      if (m.rows == 2) p[l] = -most * m.slips[1];
      return;
    }
    const auto holds_by = [&](double ratio) {
      const double a = G[0] + ratio, c = G[2] + ratio, det = a * c - G[1] * G[1];
      if (det <= 0.0) return false;
      p[k] = (G[1] * w[1] - c * w[0]) / det, p[l] = (G[1] * w[0] - a * w[1]) / det;
      return length(p + k) <= most;
    };
    if (holds_by(0.0)) return;
    double low = 0.0, high = G[0] + G[2] + 1e-300;
    while (!holds_by(high) && high < 1e12) low = high, high *= 8.0;
    for (int round = 0; round < 60; ++round) {
      const double middle = 0.5 * (low + high);
      (holds_by(middle) ? high : low) = middle;
    }
    if (!holds_by(high)) p[k] = p[l] = 0.0;
  }
};

}  // namespace sarrus
