// Tolerances of loops, with reasons; in Python: sarrus._core.tolerances. Lengths are relative to the mean size of the bodies.
#pragma once

#include "../simd/tolerance.hpp"

namespace sarrus {

/// Squared norms of four vectors: the last correction of a solution; the correction before it, or the solution if there was none; the solution; the
/// unconstrained motion.
template <class T> struct LastCorrection {
  T moved, before, size, unheld;
};
/// Record the number of corrections after which a solution has converged. This function has an effect only if code for single precision is recorded:
/// that code has a fixed number of corrections, the number that the sample states need (recording/symbolic.hpp).
template <class T> inline void expect_settled(const LastCorrection<T>&) {}

}  // namespace sarrus

namespace sarrus::tolerances {

// ---- positions: residuals relative to the scale of each row (row_sizes), or in rad and m -----------------------------------------------

/// Least residual |phi| that can be reached despite rounding: about a thousand eps. At a double root the resulting error of q is the square root of
/// this value, 3e-7.
constexpr double rounding = 1e-13;
/// Residual of a single row below which Newton's iteration stops, because smaller values are rounding errors that another step would not reduce.
constexpr double exact = 1e-15;
/// Default of the largest |phi| of a closed loop. Rounding errors are below this value even for loops with a condition number of a thousand.
constexpr double closed = 1e-10;
/// Largest |phi| of a closed loop in a configuration from the caller; the caller may have written the configuration with six digits.
constexpr double given_closed = 1e-6;
/// Largest residual [rad, body sizes] that undamped Newton steps can close, with a margin.
constexpr double projected = 1e-9;
/// Largest gap [rad, body sizes], and largest velocity error relative to max(norm of v, 1), of a state on the loops (v in rad/s, body sizes per s).
/// Measured states have such errors; above this limit, accelerations would be meaningless.
constexpr double off_loops = 1e-3;
/// Largest relative change of the accelerations by gaps of the loops. If the change is larger, the result depends on the gaps, and an error reports
/// that the state is off the loops.
constexpr double decides = 0.1;

/// Largest violation of J v = c and J a = gamma by rounding or poorly closed loops, relative to the terms of the row.
constexpr double allowed = 1e-6;
/// Velocities [rad/s, body sizes per s] and accelerations [rad/s^2, body sizes per s^2] below this value are treated as zero. It is above the
/// rounding errors of states at rest.
constexpr double at_rest = 1e-9;

// ---- steps of a simulation [rad, body sizes] ------------------------------------------------------------------------------------------

/// Residual at which the projection of a step stops: a hundred eps. Smaller residuals are rounding errors of the rows, and correcting them would
/// cause drift.
constexpr double no_drift = 1e-14;
/// Residual above which a projection factorises anew, because the configuration is too far from that of the old factor. Ten times no_drift, because
/// some rows are sums of many lengths.
constexpr double nearly_closed = 1e-13;
/// Residual above which a loop is open and the step has failed. At a double root, rounding opens a loop by the square root of eps, 1.5e-8; all other
/// loops that steps can solve stay below this value.
constexpr double torn = 1e-8;
/// This residual in single precision: a hundred times the residual that recorded steps reach, and assemble() of sarrus.cuda.
constexpr double torn_in_single = 1e-4;
/// Dependent rows are consistent off the loops too if, at a distance of 1e-4 rad from the loops, they forbid at most this fraction of an allowed
/// velocity. The limit is ten thousand times rounding. A contradiction below it has no effect, because the regularisation of the saddle equation is
/// larger.
constexpr double agreement = 1e-11;
/// Largest work of constraint forces in a step, relative to the largest work that these forces could do. Constraint forces do no work on the loops,
/// but the stages of a step are off the loops by the square of the step. If the ratio exceeds this value, the step is checked for rows that lock the
/// mechanism off the loops; such rows dissipate 3e-8 of the energy per radian. These losses add up. With a limit of 1e-7, one of eighteen
/// simulations lost a millionth of its energy without being detected.
constexpr double work = 3e-8;

// ---- steps that close the loops -------------------------------------------------------------------------------------------------------

/// First attempt of a search, if the initial configuration is near the loops: damping (mu / |phi|), largest number of steps, and largest initial
/// |phi|. With these limits no joint rotates by half a revolution, so the result contains no additional revolutions. For robots with bodies of 0.5 m,
/// near_gap corresponds to a displacement of at least 5 cm.
constexpr double near_damping = 1e-2, near_steps = 6.0, near_gap = 0.2;

/// Longest step [rad, body sizes]; the linear model of the rows is not valid for longer steps.
constexpr double longest_step = 0.5;
/// Damping (mu / |phi|) at which a search stops. Each step that does not reduce the residual multiplies the damping by four. Beyond this value, steps
/// would be so short that they change the residual by rounding only.
constexpr double stuck = 1e8;
/// Least damping (mu / |phi|), with which steps are practically Newton's.
constexpr double least_damping = 1e-6;
/// Least mu of a step. Directions whose singular value is below its square root (3e-7 of the largest possible singular value) then do not move.
/// Otherwise the rounding of a residual would determine their motion.
constexpr double least_square = 1e-13;

// ---- ranks: singular values relative to the largest possible one ----------------------------------------------------------------------

/// Singular values below this limit are zero, if the loops are closed to rounding. It is far above eps times the condition number of the rows.
constexpr double negligible = 1e-9;
/// Stiffnesses of an equilibrium below this limit, relative to the largest one, count as zero. It is ten times the error of the differences from which
/// they are computed.
constexpr double no_stiffness = 1e-10;
/// A component of a unit vector of a null space is nonzero if it exceeds this limit. The error of the vector is tolerances::negligible / (next
/// singular value).
constexpr double present = 1e-6;
/// Singular values below this limit cause a warning, because forces and velocities are then a thousand times as large as in a regular position.
constexpr double nearly_singular = 1e-3;

/// Square root of the ratio of two compliances below which the less compliant element is treated as rigid.
constexpr double rigid = 1e-7;

// ---- the saddle equation ------------------------------------------------------------------------------------------------------------

/// mu, relative to the row's diagonal entry of J M^-1 J^T. It is small enough for an accuracy of 1e-10 at a distance of 1e-5 rad from a singular
/// position, and larger than the rounding of that product.
constexpr double regularisation = 2e-15, regularisation_in_single = 1e-6;
/// A correction is significant if it is at least this value times the rounding error of the motion.
constexpr double corrects = 10.0;
/// An error bound assumes that the sum of all further corrections is at most this value times the next correction. A direction along which each
/// correction removes less than 1/100 of the error is treated as singular.
constexpr double many_corrections = 100.0;
/// A row counts as independent if at least this fraction of its diagonal entry of J M^-1 J^T remains after the elimination of the rows before it. If
/// all rows are independent, every reaction is determinate. In 37 mechanisms the fraction was at least 2e-3 for independent rows, and at most 2e-10,
/// due to rounding, for dependent rows.
constexpr double independent = 1e-6;
/// Stiffness of additional bushings between each body and the ground, relative to that of the joints' bushings (least_reactions.hpp). They make the
/// matrix regular if bodies are free to move; corrections remove their effect.
constexpr double free_bushings = 2e-13;
/// Largest number of corrections. A few suffice, except within 1e-6 rad of a singular position.
constexpr int most_corrections = 60;
/// Inertia that the factor borrows for massless bodies (borrowed_inertia.hpp), relative to the inertia that rows couple to them. With this value,
/// small quantities are computed to ten digits, and a few corrections remove the effect of the borrowed inertia if every motion on the loops has at
/// least a millionth of the coupled inertia.
constexpr double borrowed = 1e-10, borrowed_in_single = 1e-4;
/// A motion whose inertia is below ten times the borrowed inertia is massless: its acceleration is undetermined.
constexpr double no_inertia = 1e-1;
/// Diagonal entry that the factor uses for joints without a motor, relative to the weights of the motors' efforts. Corrections remove its effect.
constexpr double passive = 1e-8, passive_in_single = 2e-4;
/// Residual that marks an equation with an undetermined motion, because no inertia resists it. It exceeds every residual that can be computed.
constexpr double undetermined = 1e200;
/// Relative residual above which constraints contradict one another. Rounding cannot cause such a large residual.
constexpr double contradiction = 1e-6, contradiction_in_single = 1e-3;
/// Relative residual that no regular equation exceeds. A larger one occurs near a singular position, or if rows are so nearly dependent that their
/// rank depends on rounding.
constexpr double unresolved = 1e-12, unresolved_in_single = 1e-3;
/// Ratio of two residuals, that of the solution's multipliers to that of the multipliers of least norm. Below it, the latter have lost part of the
/// load. Both residuals include that of the accelerations.
constexpr double loses = 0.1;
/// Entries of J below this value are rounding, relative to the largest entry of the same constraint in that column.
constexpr double no_entry = 1e-14, no_entry_in_single = 1e-6;
/// Rounding error of an entry of the saddle equation, relative to the largest entry. It is a tenth of eps, because most rounding errors cancel.
constexpr double entry_rounding = 2e-17;
/// Derivatives are meaningless if rounding errors of the loops' rows change the accelerations by more than this relative value. At the distance d
/// from a singular position, this change is 1e-16 / d. The error of q after closing the loops has the same order, and changes derivatives in
/// proportion to 1 / d^4. The limit corresponds to d = 0.5e-4 rad.
constexpr double differentiable = 2e-12;
/// Derivatives are exact to rounding if rounding errors of the rows change the accelerations by less than this relative value. This holds at
/// distances of more than 0.1 rad from a singular position.
constexpr double regular = 1e-15;

}  // namespace sarrus::tolerances
