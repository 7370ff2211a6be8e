"""Libraries that sarrus is compared with (peers); all of them read the same URDF text.

The common coordinates are those of Pinocchio: joints in its order; a free joint has q = [position; quaternion] and v = [linear; angular].
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .models import Model

try:
    import pinocchio as pin
except ImportError:
    pin = None
try:
    import mujoco
except ImportError:
    mujoco = None

Array = NDArray[np.float64]

# The order is that of joint_model() in pinocchio_peer.cpp; Pinocchio puts JointModel before each.
JOINT_KINDS = ["RX", "RY", "RZ", "RevoluteUnaligned", "PX", "PY", "PZ", "PrismaticUnaligned", "FreeFlyer"]
ALGORITHMS = ["rnea", "aba local", "aba world", "crba local", "crba world", "rnea derivatives", "aba derivatives"]

SOURCE = Path(__file__).with_name("pinocchio_peer.cpp")
FLAGS = [
    *("-std=c++17", "-O3", "-DNDEBUG", "-w"),
    *(
        "-shared",
        "-fPIC",
        "-fvisibility=hidden",
        "-fno-gnu-unique",
    ),  # hidden visibility, so that symbols do not clash with those of Pinocchio's wheel
    *("-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30"),
    *("-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS", "-DBOOST_FUSION_INVOKE_MAX_ARITY=12"),
]


class PeerNotBuiltError(RuntimeError):
    """Error if Pinocchio's templates are not compiled on this machine yet, or cannot be compiled."""


def pinocchio_model(model: Model) -> pin.Model:
    root = [pin.JointModelFreeFlyer()] if model.floating else []
    return pin.buildModelFromXML(model.urdf, *root)


def cxx() -> str:
    return os.environ.get("CXX", "g++")


def cxx_version() -> str:
    return subprocess.run([cxx(), "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def build_pinocchio_peer(extra_flags: tuple[str, ...] = (), *, build: bool = False, source: Path = SOURCE) -> Path:
    """Return the path of the shared library of `source`: from the user's cache or, if `build`, compiled (in one or two minutes)."""
    prefix = next((p for p in Path(pin.__file__).parents if (p / "include/pinocchio").is_dir()), None)
    if prefix is None:
        raise PeerNotBuiltError("Pinocchio's headers are not installed: pip install pin")
    if build and not (prefix / "include/eigen3/Eigen/Core").is_file():
        raise PeerNotBuiltError("Eigen's headers are not installed beside Pinocchio's: pip install 'cmeel-eigen<4'")
    if shutil.which(cxx()) is None:
        raise PeerNotBuiltError(f"no compiler {cxx()!r}; set CXX")
    flags = [*FLAGS, *extra_flags]
    key = hashlib.sha256(repr((source.read_text(), flags, cxx_version(), pin.__version__, str(prefix))).encode())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sarrus-benchmarks"
    library = cache / f"{source.stem}-{key.hexdigest()[:16]}.so"
    if library.exists():
        return library
    if not build:
        raise PeerNotBuiltError("Pinocchio's templates are not compiled yet: add --build-peer (a minute or two)")
    cache.mkdir(parents=True, exist_ok=True)
    unfinished = library.with_suffix(f".{os.getpid()}")
    includes = ["-isystem", str(prefix / "include"), "-isystem", str(prefix / "include/eigen3")]
    link = [f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}", "-lboost_serialization"]
    command = [cxx(), *flags, *includes, str(source), "-o", str(unfinished), *link]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.splitlines() or [f"exit code {done.returncode}"]
        raise PeerNotBuiltError(f"{source.name} does not compile: {next((x for x in said if 'error' in x), said[-1])}")
    unfinished.rename(library)  # renamed at the end, so that an interrupted build leaves no incomplete library
    return library


class PinocchioCpp:
    """Pinocchio's C++ templates on one model, called and timed inside C++."""

    def __init__(self, library: Path, model: pin.Model) -> None:
        self._c = ctypes.CDLL(str(library))
        self._c.peer_new.restype = ctypes.c_void_p
        self._c.peer_time.restype = ctypes.c_double
        joints = range(1, model.njoints)
        names = [model.joints[i].shortname().removeprefix("JointModel") for i in joints]
        axes = [getattr(model.joints[i].extract(), "axis", np.zeros(3)) for i in joints]
        placement = [np.append(model.jointPlacements[i].rotation, model.jointPlacements[i].translation) for i in joints]
        inertia = [
            np.concatenate([[model.inertias[i].mass], model.inertias[i].lever, model.inertias[i].inertia.ravel()])
            for i in joints
        ]
        if np.any(model.armature):
            raise ValueError("the C++ peer knows no armature")
        self._peer = ctypes.c_void_p(
            self._c.peer_new(
                model.njoints - 1,
                pointer(np.array([model.parents[i] for i in joints], dtype=np.int32)),
                pointer(np.array([JOINT_KINDS.index(name) for name in names], dtype=np.int32)),
                pointer(np.array(axes, dtype=float)),
                pointer(np.array(placement)),
                pointer(np.array(inertia)),
                pointer(np.array(model.gravity.linear)),
            )
        )
        if not self._peer:
            raise ValueError("Pinocchio refused the model")
        self._nv = model.nv

    def __del__(self) -> None:
        if getattr(self, "_peer", None):
            self._c.peer_delete(self._peer)

    def time(self, algorithm: str, q: Array, v: Array, x: Array, repeats: int) -> float:
        """Return the time per call [s] over `repeats` passes through the rows of q (N, nq), v (N, nv) and x (N, nv)."""
        index = ALGORITHMS.index(algorithm)
        return float(self._c.peer_time(self._peer, index, len(q), pointer(q), pointer(v), pointer(x), repeats))

    def call(self, algorithm: str, q: Array, v: Array, x: Array) -> Array:
        """Return the result at one state: (nv,), or the full mass matrix (nv, nv)."""
        out = np.empty((self._nv, self._nv) if algorithm.startswith("crba") else self._nv)
        index = ALGORITHMS.index(algorithm)
        self._c.peer_call(self._peer, index, pointer(q), pointer(v), pointer(x), pointer(out))
        return np.triu(out) + np.triu(out, 1).T if out.ndim == 2 else out


def load_mujoco(model: Model, pin_model: pin.Model) -> MuJoCo | None:
    """Return the model in MuJoCo; None if MuJoCo is not installed, or rejects the model."""
    try:
        return MuJoCo(model, pin_model) if mujoco else None
    except ValueError:
        return None


def pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    if not array.flags.c_contiguous:
        raise ValueError("the C++ peer takes C-contiguous arrays")
    return array.ctypes.data_as(ctypes.c_void_p)  # data_as returns a pointer that keeps the array alive


class MuJoCo:
    """MuJoCo on one model, without contacts, limits, friction, actuators and sensors.

    `mj_inverse` and `mj_forward` always compute the mass matrix and its sparse factor, too. Their times are the cost for a user of MuJoCo, but they
    include more work than RNEA.
    """

    def __init__(self, model: Model, pin_model: pin.Model) -> None:
        root = ET.fromstring(model.urdf)
        if model.floating:
            children = {joint.find("child").get("link") for joint in root.findall("joint")}  # type: ignore[union-attr]
            base = next(link.get("name") for link in root.findall("link") if link.get("name") not in children)
            ET.SubElement(root, "link", name="mujoco_world")
            joint = ET.SubElement(root, "joint", name="root_joint", type="floating")
            ET.SubElement(joint, "parent", link="mujoco_world")
            ET.SubElement(joint, "child", link=str(base))
        self.mj_inverse, self.mj_forward = mujoco.mj_inverse, mujoco.mj_forward
        self.model = m = mujoco.MjModel.from_xml_string(ET.tostring(root, encoding="unicode"))
        self.data = mujoco.MjData(m)
        off = mujoco.mjtDisableBit
        m.opt.disableflags |= off.mjDSBL_CONSTRAINT | off.mjDSBL_CONTACT | off.mjDSBL_ACTUATION | off.mjDSBL_SENSOR
        # q_mujoco = q_pin[q_order], and so on; only the vectors of a free joint must also be rotated to other axes
        self.floating = model.floating
        self.q_order, self.v_order = np.empty(m.nq, dtype=int), np.empty(m.nv, dtype=int)
        for i in range(1, pin_model.njoints):
            joint, here = pin_model.joints[i], m.joint(pin_model.names[i])
            q = np.arange(joint.idx_q, joint.idx_q + joint.nq)
            if joint.nq == 7:
                q = q[[0, 1, 2, 6, 3, 4, 5]]  # MuJoCo's quaternion is (w, x, y, z)
            self.q_order[here.qposadr[0] : here.qposadr[0] + joint.nq] = q
            self.v_order[here.dofadr[0] : here.dofadr[0] + joint.nv] = np.arange(joint.idx_v, joint.idx_v + joint.nv)

    def states(self, q: Array, v: Array, a: Array, tau: Array) -> tuple[Array, Array, Array, Array]:
        """Return Pinocchio's states in MuJoCo's coordinates, (N, nq) and (N, nv)."""
        v, a, tau = v.copy(), a.copy(), tau.copy()
        # linear components are expressed in world axes, and accelerations are those of a point instead of the derivative in the body's frame
        if self.floating:
            R = np.array([pin.Quaternion(*row[[6, 3, 4, 5]]).matrix() for row in q])
            a[:, :3] += np.cross(v[:, 3:6], v[:, :3])
            for x in (v, a, tau):
                x[:, :3] = np.einsum("nij,nj->ni", R, x[:, :3])
        v, a, tau = (np.ascontiguousarray(x[:, self.v_order]) for x in (v, a, tau))
        return np.ascontiguousarray(q[:, self.q_order]), v, a, tau

    def inverse(self, q: Array, v: Array, a: Array) -> Array:
        self.data.qpos, self.data.qvel, self.data.qacc = q, v, a
        self.mj_inverse(self.model, self.data)
        return np.array(self.data.qfrc_inverse)

    def forward(self, q: Array, v: Array, tau: Array) -> Array:
        self.data.qpos, self.data.qvel, self.data.qfrc_applied = q, v, tau
        self.mj_forward(self.model, self.data)
        return np.array(self.data.qacc)
