// Multistart search for a configuration that closes the loops, and the messages of its errors.
//
// The first start is that of the caller. Further starts are drawn around it in opposite pairs, at small, medium and large distances, until the loops
// close with all joints within their limits. The result is the nearest of the configurations that were found. Fixed joints do not move.
#pragma once

#include <cstdint>

#include "closure.hpp"

namespace sarrus {

class Search {
 public:
  /// `start` (nq) must contain the coordinates of the tree joints that the closure fixes.
  Search(const Closure& closure, Vector start, ClosingInput input, std::uint64_t seed);

  /// Return the closed configuration nearest to the start, within limits if possible, and its residual. If no start succeeds, the
  /// configuration with the smallest residual is returned.
  Closure::Closed nearest(int starts, double tolerance);
  /// Return all closed configurations that are found from this number of starts, nearest first. Joint limits are ignored.
  std::vector<Vector> all(int starts, double tolerance);

  /// Return the message of a failed search: the open constraints of its best configuration, and the likely cause.
  std::string why_open(const Vector& q) const;
  /// Return the message of unreachable targets: the distances of the frames with closed loops.
  std::string why_out_of_reach(const Vector& q) const;
  /// Return the number of degrees of freedom of the joints that are not fixed.
  int degrees_of_freedom(const Vector& q) const;

 private:
  void check_interrupt() const {
    if (closure_.model.check_interrupt) closure_.model.check_interrupt();
  }
  Vector next_start();
  bool is_nearer(const Vector& a, const Vector& b) const;
  std::vector<double> distances(const Vector& q) const;
  Vector open_by(const Vector& q) const;

  const Closure& closure_;
  Vector start_;
  ClosingInput input_;
  std::vector<int> by_name_;  // velocities, in the order of their joints' names: random numbers are distributed in this order
  Vector reach_;  // (nv) largest scaled motion to a start; 0 for fixed velocities
  RandomNumbers random_;
  // (nv) scaled motion to the last start; the next start is on the opposite side, so that the seed does not decide between two mirrored solutions
  Vector aside_;
  int drawn_ = 0;  // number of starts
};

}  // namespace sarrus
