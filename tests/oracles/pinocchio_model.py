"""The same tree in Pinocchio, with sarrus' conventions: results of another library for comparison.

Pinocchio has a velocity before a rotation, and free joints as [position; quaternion]. Its joints with several axes do not displace and rotate like
sarrus'; such joints become chains of simple ones between massless bodies.
"""

import numpy as np
import pinocchio as pin

from .joint_motion import GIMBAL, axis_frame
from .kinematics import Tree

# [linear; angular] <-> [angular; linear]
SWAP = np.kron([[0, 1], [1, 0]], np.eye(3))
REPRESENTATIONS = {"frame": pin.LOCAL, "world": pin.WORLD, "world_aligned": pin.LOCAL_WORLD_ALIGNED}


def placement(transform):
    return pin.SE3(np.array(transform.rotation), np.array(transform.translation))


def turned(R):
    return pin.SE3(np.array(R), np.zeros(3))


def chain(joint, sign):
    """Return the joint as [(placement, joint), ...], and the pose of its successor's frame after it. sign -1: seen from the successor."""
    turn = lambda axis: pin.JointModelRevoluteUnaligned(sign * np.asarray(axis, float))  # noqa: E731
    slide = lambda axis: pin.JointModelPrismaticUnaligned(sign * np.asarray(axis, float))  # noqa: E731
    here = pin.SE3.Identity()
    match type(joint).__name__:
        case "Fixed":
            return [], here
        case "Revolute":
            return [(here, turn(joint.axis))], here
        case "Prismatic":
            return [(here, slide(joint.axis))], here
        case "Helical":
            return [(here, pin.JointModelHelicalUnaligned(sign * np.array(joint.axis), joint.pitch))], here
        case "Cylindrical":
            return [(here, turn(joint.axis)), (here, slide(joint.axis))], here
        case "Universal":
            return [(here, turn(joint.axis1)), (here, turn(joint.axis2))], here
        case "Planar":
            E = axis_frame(joint.normal)
            return [(turned(E), pin.JointModelPlanar())], turned(E.T)
        case "Spherical":
            return [(here, pin.JointModelSpherical())], here
        case "Free":
            return [(here, pin.JointModelFreeFlyer())], here
        case "Gimbal":
            joints = []
            for k, name in enumerate(GIMBAL):
                axis = np.eye(3)[k % 3]
                if name in joint.free:
                    joints.append((here, turn(axis) if k < 3 else slide(axis)))
                    here = pin.SE3.Identity()
                else:
                    amount = joint.fixed[k] * axis
                    here = here * (turned(pin.exp3(amount)) if k < 3 else pin.SE3(np.eye(3), amount))
            return joints, here
        case kind:
            raise NotImplementedError(f"no joint {kind!r}")


class Pinocchio:
    """Pinocchio's model; methods have the names and meaning of `sarrus.Mechanism`, for one state at a time; no springs.

    Pinocchio does not count bodies that are welded to the ground: compare masses only if ``welded`` is False.
    """

    def __init__(self, description):
        self.tree = tree = Tree(description)
        self.model = model = pin.Model()
        model.gravity.linear = np.array(description.gravity)
        self.welded = bool(np.any(~np.any(tree.support[:-1], axis=1)))
        self.nq, self.nv = tree.nq, tree.nv
        self.blocks = []  # (joint's type, its slices of q and v, where Pinocchio has them)
        self.body = {"ground": (0, pin.SE3.Identity())}  # its joint in Pinocchio, its pose there
        self.after = {}  # joint -> its last one in Pinocchio, and the successor's joint frame there
        self.V = np.zeros((tree.nv, tree.nv))  # Pinocchio's v = V v
        self.damping, self.friction, self.armature = np.zeros((3, tree.nv))
        for spec, sign in self._depth_first("ground"):
            self._add(spec, sign, {body.name: body.inertia for body in description.bodies})
            where = tree.v_slice[spec.name]
            self.damping[where], self.friction[where] = spec.joint.damping, spec.joint.friction
            self.armature[where] = spec.joint.armature
        model.armature = self.V @ self.armature
        places = {name: (name, pin.SE3.Identity()) for name in self.body}
        places |= {frame.name: (frame.body, placement(frame.placement)) for frame in description.frames}
        self.frame = {}
        for name, (body, where) in places.items():
            joint, at = self.body[body]
            self.frame[name] = model.addFrame(pin.Frame(f"frame {name}", joint, 0, at * where, pin.FrameType.OP_FRAME))
        self.data = model.createData()

    def _depth_first(self, body):
        """Order the joints depth first, as Pinocchio's algorithms require."""
        for spec, sign in self.tree.outward:
            near, far = (spec.parent, spec.child)[::sign]
            if near == body:
                yield spec, sign
                yield from self._depth_first(far)

    def _add(self, spec, sign, inertias):
        near, far = (spec.parent, spec.child)[::sign]
        at_near, at_far = (spec.at_parent, spec.at_child)[::sign]
        joint, at = self.body[near]
        at = at * placement(at_near)
        joints, rest = chain(spec.joint, sign)
        iq, iv = self.model.nq, self.model.nv
        for k, (before, model) in enumerate(joints):
            joint, at = self.model.addJoint(joint, model, at * before, f"{spec.name} {k}"), pin.SE3.Identity()
        at = at * rest
        self.after[spec.name] = joint, at
        self.body[far] = joint, at * placement(at_far).inverse()
        inertia = inertias[far]
        self.model.appendBodyToJoint(
            joint, pin.Inertia(inertia.mass, np.array(inertia.com), np.array(inertia.about_com)), self.body[far][1]
        )
        kind, theirs = type(spec.joint).__name__, slice(iv, self.model.nv)
        self.V[theirs, self.tree.v_slice[spec.name]] = SWAP if kind == "Free" else np.eye(self.model.nv - iv)
        self.blocks.append((kind, self.tree.q_slice[spec.name], slice(iq, self.model.nq)))

    def configuration(self, q):
        """Return Pinocchio's q."""
        theirs = np.zeros(self.model.nq)
        for kind, ours, where in self.blocks:
            x = np.asarray(q)[ours]
            if kind == "Free":
                x = np.concatenate([x[4:], x[:4]])
            elif kind == "Planar":
                x = np.array([x[0], x[1], np.cos(x[2]), np.sin(x[2])])
            theirs[where] = x
        return theirs

    def _forces(self, wrenches):
        forces = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for name, wrench in (wrenches or {}).items():
            frame = self.model.frames[self.frame[name]]
            forces[frame.parentJoint] += frame.placement.act(pin.Force(SWAP @ wrench))
        vector = pin.StdVec_Force()
        vector.extend(forces)
        return vector

    def _passive(self, v):
        return self.damping * v + self.friction * np.sign(v)

    def _columns(self, matrix):
        """Return a (k, nv) matrix of Pinocchio, which is flat if nv = 1, for sarrus' velocities."""
        return matrix.reshape(-1, self.nv) @ self.V

    def _move(self, q, v=None, a=None):
        q, zero = self.configuration(q), np.zeros(self.nv)
        v, a = self.V @ (zero if v is None else v), self.V @ (zero if a is None else a)
        pin.computeJointJacobiansTimeVariation(self.model, self.data, q, v)
        pin.forwardKinematics(self.model, self.data, q, v, a)
        pin.updateFramePlacements(self.model, self.data)

    # ---- kinematics

    def difference(self, q0, q1):
        return self.V.T @ pin.difference(self.model, self.configuration(q0), self.configuration(q1))

    def pose(self, q, frame):
        self._move(q)
        return self.data.oMf[self.frame[frame]].homogeneous.copy()

    def velocity(self, q, v, frame, *, expressed_in="frame"):
        self._move(q, v)
        return (
            SWAP @ pin.getFrameVelocity(self.model, self.data, self.frame[frame], REPRESENTATIONS[expressed_in]).vector
        )

    def acceleration(self, q, v, a, frame, *, expressed_in="frame"):
        self._move(q, v, a)
        # in "world" ours is the derivative of the spatial velocity, which is what Pinocchio calls the acceleration
        get = pin.getFrameAcceleration if expressed_in == "world" else pin.getFrameClassicalAcceleration
        return SWAP @ get(self.model, self.data, self.frame[frame], REPRESENTATIONS[expressed_in]).vector

    def jacobian(self, q, frame, *, expressed_in="frame"):
        self._move(q)
        return SWAP @ self._columns(
            pin.getFrameJacobian(self.model, self.data, self.frame[frame], REPRESENTATIONS[expressed_in])
        )

    def jacobian_derivative(self, q, v, frame, *, expressed_in="frame"):
        self._move(q, v)
        rate = pin.getFrameJacobianTimeVariation(
            self.model, self.data, self.frame[frame], REPRESENTATIONS[expressed_in]
        )
        return SWAP @ self._columns(rate)

    # ---- dynamics

    def inverse_dynamics(self, q, v, a, *, wrenches=None):
        tau = pin.rnea(self.model, self.data, self.configuration(q), self.V @ v, self.V @ a, self._forces(wrenches))
        return self.V.T @ tau + self._passive(v)

    def reactions(self, q, v, a, *, wrenches=None):
        """Return the reactions of joints that are not welds, because Pinocchio merges the bodies of welds."""
        self.inverse_dynamics(q, v, a, wrenches=wrenches)
        moving = {spec.name for spec in self.tree.joints.values() if spec.joint.nv}
        return {
            name: SWAP @ at.actInv(self.data.f[joint]).vector
            for name, (joint, at) in self.after.items()
            if name in moving
        }

    def forward_dynamics(self, q, v, tau, *, wrenches=None):
        tau = self.V @ (tau - self._passive(v))
        return self.V.T @ pin.aba(self.model, self.data, self.configuration(q), self.V @ v, tau, self._forces(wrenches))

    def mass_matrix(self, q):
        upper = np.triu(pin.crba(self.model, self.data, self.configuration(q)))
        return self.V.T @ (upper + np.triu(upper, 1).T) @ self.V

    def mass_matrix_inverse(self, q):
        upper = np.triu(pin.computeMinverse(self.model, self.data, self.configuration(q)))
        return self.V.T @ (upper + np.triu(upper, 1).T) @ self.V

    def bias_forces(self, q, v):
        return self.V.T @ pin.nonLinearEffects(
            self.model, self.data, self.configuration(q), self.V @ v
        ) + self._passive(v)

    def gravity_forces(self, q):
        return self.V.T @ pin.computeGeneralizedGravity(self.model, self.data, self.configuration(q))

    def omega(self, q, frame):
        return self.mass_matrix_inverse(q) @ self.jacobian(q, frame).T

    def operational_inertia_inverse(self, q, frame):
        return self.jacobian(q, frame) @ self.omega(q, frame)

    # ---- masses

    def center_of_mass(self, q):
        return pin.centerOfMass(self.model, self.data, self.configuration(q)).copy()

    def center_of_mass_jacobian(self, q):
        return self._columns(pin.jacobianCenterOfMass(self.model, self.data, self.configuration(q)))

    def centroidal_momentum_matrix(self, q):
        return SWAP @ self._columns(pin.computeCentroidalMap(self.model, self.data, self.configuration(q)))

    def centroidal_momentum(self, q, v):
        return SWAP @ pin.computeCentroidalMomentum(self.model, self.data, self.configuration(q), self.V @ v).vector

    def centroidal_momentum_bias(self, q, v):
        rate = pin.computeCentroidalMapTimeVariation(self.model, self.data, self.configuration(q), self.V @ v)
        return SWAP @ self._columns(rate) @ v

    def momentum(self, q, v):
        about_com = self.centroidal_momentum(q, v)
        return about_com + np.concatenate([np.cross(self.center_of_mass(q), about_com[3:]), np.zeros(3)])

    def kinetic_energy(self, q, v):
        # Pinocchio 4.1 leaves the armature of JointModelRevoluteUnaligned out, but of no other: so take none from it
        without = self.model.copy()
        without.armature = np.zeros(self.nv)
        rigid = pin.computeKineticEnergy(without, self.data, self.configuration(q), self.V @ v)
        return rigid + 0.5 * self.armature @ (v * v)

    def potential_energy(self, q):
        return pin.computePotentialEnergy(self.model, self.data, self.configuration(q))
