// The tolerances of loops, each with its reason. Python reads them as sarrus._core.tolerances; nothing else repeats them.
#pragma once

#include "../simd/tolerance.hpp"

namespace sarrus {

/// Squared sizes of the last correction of an equation's solution, of the one before it (or the solution itself), and of the solution.
template <class T> struct LastCorrection {
  T moved, before, size, unheld;
};
/// Record that no correction is left: nothing to do if corrections go on until then. Code for single precision has as many as sample states need
/// (recording/record.hpp).
template <class T> inline void expect_settled(const LastCorrection<T>&) {}

}  // namespace sarrus

namespace sarrus::tolerances {

// ---- positions: residuals relative to the mechanism's size, or in rad and m ----------------------------------------------------------

/// Residual of a closed loop by rounding: a thousand eps. A double root is then known to its square root, 3e-7.
constexpr double rounding = 1e-13;
/// Rounding level of a row's residual: smaller values are chance, and another step would not improve it.
constexpr double exact = 1e-15;
/// Residual of a closed loop if the caller gives none: above rounding even for loops that are a thousand times ill-conditioned.
constexpr double closed = 1e-10;
/// The same for given configurations, which may have been written with six digits.
constexpr double given_closed = 1e-6;
/// Largest residual from which Newton's steps close the loops, with a margin [rad, sizes of the bodies].
constexpr double projected = 1e-9;
/// A state farther off the loops is not one of this mechanism, and accelerations would be meaningless; nearer, it may be measured
/// [rad, sizes of the bodies; of the velocities, or of 1 rad/s, or such a size a second].
constexpr double off_loops = 1e-3;
/// Share of the accelerations that a gap of the loops may change before the state counts as off the loops.
constexpr double decides = 0.1;

/// Relative effect of rounding and badly closed loops on a motion that they allow, and on its forces.
constexpr double allowed = 1e-6;
/// Velocities and accelerations that count as zero [rad/s, sizes of the bodies a second; per s].
constexpr double at_rest = 1e-9;

// ---- steps of a simulation [rad, sizes of the bodies] ---------------------------------------------------------------------------------

/// Residual of a step's projection: a hundred eps. Less would be rounding of the rows, and a share of it would drift.
constexpr double no_drift = 1e-14;
/// A projection that leaves more used a factor from too far away, which is then replaced. Ten times the above, for rows that are sums of many
/// lengths.
constexpr double nearly_closed = 1e-13;
/// Residual above which a loop is open and the step has failed. Rounding opens a loop at a double root by the square root of eps,
/// 1.5e-8; other loops that steps can solve stay below this value.
constexpr double torn = 1e-8;
/// Dependent rows agree off the loops too if, a ten-thousandth of a radian off them, they forbid no more than this of a velocity: ten thousand times
/// rounding. A smaller contradiction is too weak to withstand the regularisation of the saddle equation.
constexpr double agreement = 1e-11;
/// Constraint forces do no work, except in a stage that is off the loops by the square of a step: a share of their possible work. Above this share
/// the step checks if they lock the mechanism there: each radian loses 3e-8 of its energy otherwise. Many steps add up: at 1e-7
/// per run of eighteen lost a millionth unchecked.
constexpr double work = 3e-8;

// ---- steps onto the loops -----------------------------------------------------------------------------------------------------------

/// The first steps of a search, from nearby: their damping (mu / |phi|), their largest number, and the largest |phi| of their start. No joint makes half
/// a turn in them, so that none is wound up, and no other start would be nearer: a jump of 5 cm and more of robots whose bodies are half a metre long.
constexpr double near_damping = 1e-2, near_steps = 6.0, near_gap = 0.2;

/// Longest step [rad, sizes of the bodies]: a linear model is invalid farther away.
constexpr double longest_step = 0.5;
/// Damping grows fourfold with each step that does not reduce the residual; at this one the next step would be shorter than
/// rounding of the residual.
constexpr double stuck = 1e8;
/// Least damping: steps are Newton's by then.
constexpr double least_damping = 1e-6;
/// Directions whose singular value is below the square root of this (3e-7 of the largest possible) do not move: the rounding of a residual would
/// determine their motion.
constexpr double least_square = 1e-13;

// ---- ranks: singular values relative to the largest possible --------------------------------------------------------------------------

/// Threshold for zero if loops are closed to rounding: well above eps times the condition of their rows.
constexpr double negligible = 1e-9;
/// Above rounding in a unit vector of a null space, whose error is negligible / the next singular value.
constexpr double present = 1e-6;
/// Singular values below it deserve a warning: forces and velocities are a thousand times their apparent size.
constexpr double nearly_singular = 1e-3;

/// Square root of the ratio of two compliances at which the smaller counts as rigid.
constexpr double rigid = 1e-7;

// ---- the saddle equation ------------------------------------------------------------------------------------------------------------

/// mu, relative to a row's J M^-1 J^T: small enough to leave 1e-10 of accuracy at a hundred-thousandth of a radian from a singular position, large
/// enough to be above the rounding of that product.
constexpr double regularisation = 2e-15, regularisation_in_single = 1e-6;
/// Least significant ratio of a correction to the motion; smaller ratios are rounding.
constexpr double corrects = 10.0;
/// Largest number of corrections of a regular direction: if each removes less than that share of the error, the direction is
/// singular.
constexpr double many_corrections = 100.0;
/// Share of a row's J M^-1 J^T that the rows before it leave if every reaction is determined. Over 37 mechanisms no less than 2e-3; otherwise 2e-10
/// at most, by rounding.
constexpr double independent = 1e-6;
/// Stiffness of the bodies' bushings to the ground, relative to reactions shared by bushings of unit stiffness: free motions need some; corrections
/// remove it.
constexpr double free_bushings = 2e-13;
/// Largest number of corrections; a few suffice, except within a millionth of a radian of a singular position.
constexpr int most_corrections = 60;
/// Inertia that the factor borrows for massless bodies, relative to the inertia that rows tie them to. Ten digits are left for small quantities, and a
/// few corrections remove it if every motion on the loops has at least a millionth of that.
constexpr double borrowed = 1e-10, borrowed_in_single = 1e-4;
/// A motion with less than ten times this inertia counts as massless.
constexpr double no_inertia = 1e-1;
/// Share in the metric of efforts that the factor borrows for joints without a motor; corrections remove it.
constexpr double passive = 1e-8, passive_in_single = 2e-4;
/// Residual that marks an equation with an undetermined motion, because no inertia resists it: larger than any other residual.
constexpr double undetermined = 1e200;
/// A relative residual that no rounding explains: constraints contradict one another.
constexpr double contradiction = 1e-6, contradiction_in_single = 1e-3;
/// Relative residual above that of any regular equation: near a singular position, or with nearly dependent rows, rounding
/// decides which rows are independent.
constexpr double unresolved = 1e-12, unresolved_in_single = 1e-3;
/// Residual of other multipliers, relative to that of the least ones, below which the least ones have lost part of the load. Both
/// contain the residual of the accelerations themselves.
constexpr double loses = 0.1;
/// Rounding of an entry of J, relative to the largest entry that a constraint's rows have in the same column.
constexpr double no_entry = 1e-14, no_entry_in_single = 1e-6;
/// Rounding of an entry of the saddle equation, relative to the largest: a tenth of eps, since it mostly cancels.
constexpr double entry_rounding = 2e-17;
/// Relative change of accelerations by rounding of the loops' rows above which derivatives are useless. Towards a singular position, at the distance
/// d, this is 1e-16 / d; q of closed loops has the same error, and derivatives change with it as 1 / d^4. Half of 1e-4 rad.
constexpr double differentiable = 2e-12;
/// Relative change of accelerations by rounding below which derivatives are exact to rounding: from about a tenth of a radian on.
constexpr double regular = 1e-15;

}  // namespace sarrus::tolerances
