// Motions that the loops allow, and forces of joints: linear algebra of one state, for any number of dependent constraint rows.
#pragma once

#include "mobility.hpp"

namespace sarrus {

/// Solutions of J x = g: x = inverse g + basis y for any y.
struct FreeMotions {
  Matrix basis;  // (nv, freedom), orthonormal columns
  Matrix inverse;  // (nv, rows): x has least norm, and components of g outside of the range of J are ignored
};
/// Compute the solutions for constraint rows J (rows, nv). Ranks are those of R J C with the diagonals C and R (scaled_loops.hpp), so that they do not
/// depend on units.
FreeMotions free_motions(const Matrix& J, const Vector& column_scale, const Vector& row_scale);
/// Return N (N^T M N)^-1 N^T, the acceleration per generalised force along motions N (nv, k). Raises NoAnswer if a motion moves no mass.
Matrix constrained_inverse(const Matrix& N, const Matrix& M);

/// Return an orthonormal basis (n, count) of the range of a projector. Unit vectors of the axes that are in the range are basis vectors.
Matrix orthonormal_basis(Matrix projector, int count);
/// Motion space of a joint (6, nv), its complement (6, 6 - nv), and their dual bases (van der Merwe 2.10-2.15). The complement is its own dual.
struct JointBases {
  Matrix phi, phi_c, psi;
};
JointBases joint_bases(const Matrix& phi);

/// Names of joints, then of other constraints between bodies, with the index of each one's load (loops/joint_loads.hpp).
Named<int> load_places(const Mechanism& mechanism);
/// Return the roots R, R^T R = C, of compliance matrices C (6, 6) of joints and rods, flattened for all loads (36 each); zero if rigid. Raises
/// NameNotFoundError for other names, std::invalid_argument for a matrix that is not symmetric and positive semidefinite.
Vector compliance_roots(const Mechanism& mechanism, const Named<Matrix>& compliance);
/// Return the efforts along loop joints (loop_nv) if motors, some of which are in loop joints, produce all of tau; zero if they cannot. `across`:
/// Jacobian of the loop joints' velocities (loop_nv, nv).
Vector efforts_of_closing_motors(const Mechanism& mechanism, const Matrix& across, const Vector& tau);

/// Return the total load (joints, 6) [moment; force] that wrenches of constraints (constraints, 6) exert on the subtree of each tree joint, in the
/// joint's frame on its successor; zero for loop joints. The wrenches act on the constraints' children, the opposite wrenches on the parents.
Matrix loads_on_tree(const StateFunctions& functions, const double* q, const Matrix& wrenches);

}  // namespace sarrus
