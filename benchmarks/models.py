"""Five models as URDF texts, so that every library reads the same parameters."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

from .tables import Run, installed

# Elements that are removed, because libraries interpret them differently, or because no measurement uses them.
NOT_RIGID_BODY_DYNAMICS = ("visual", "collision", "dynamics", "mimic", "transmission", "gazebo")


TITLES = {
    "ur5": "UR5 (6 dof)",
    "panda": "Panda (7 dof)",
    "solo": "Solo12 (18 dof)",
    "talos": "Talos (38 dof)",
    "chain": "chain of 100 links",
}


@dataclass(frozen=True)
class Model:
    """Mechanism to measure.

    Attributes
    ----------
    name : name for ``--only``
    urdf : description for all libraries
    floating : True if the root link floats
    """

    name: str
    urdf: str
    floating: bool = False

    @property
    def title(self) -> str:
        """Name in tables."""
        return TITLES[self.name]


def _robot(path: str, locked: tuple[str, ...] = ()) -> str:
    """Return the text of a URDF of example-robot-data, in which unused elements are removed and the joints in `locked` are fixed."""
    robots = distribution("example-robot-data").locate_file("cmeel.prefix/share/example-robot-data/robots")
    root = ET.parse(Path(str(robots)) / path).getroot()
    for parent in [root, *root.findall("link"), *root.findall("joint")]:
        for child in list(parent):
            if child.tag in NOT_RIGID_BODY_DYNAMICS:
                parent.remove(child)
    for joint in root.findall("joint"):
        if joint.get("name") in locked:
            joint.set("type", "fixed")
    return ET.tostring(root, encoding="unicode")


def chain(links: int = 100, seed: int = 0) -> str:
    """Return the URDF text of a chain of revolute joints about x, y, z, x, ..., with irregular bodies of about 0.3 m."""
    rng = np.random.default_rng(seed)
    lines = [f'<robot name="chain{links}">', '<link name="base"/>']
    parent = "base"
    for i in range(links):
        mass = float(rng.uniform(0.5, 1.5))
        side = rng.uniform(0.2, 0.4, 3)  # inertia of a box, rotated and displaced
        ixx, iyy, izz = (mass / 12 * (np.sum(side**2) - side**2)).tolist()
        axis = ("1 0 0", "0 1 0", "0 0 1")[i % 3]
        place = f'xyz="{_text(rng.uniform(-0.1, 0.1, 3))}" rpy="{_text(rng.uniform(-1, 1, 3))}"'
        com = f'xyz="{_text(rng.uniform(-0.05, 0.05, 3))}" rpy="{_text(rng.uniform(-1, 1, 3))}"'
        lines += [
            f'<link name="link{i}"><inertial><origin {com}/><mass value="{mass!r}"/>'
            f'<inertia ixx="{ixx!r}" iyy="{iyy!r}" izz="{izz!r}" ixy="0" ixz="0" iyz="0"/></inertial></link>',
            f'<joint name="joint{i}" type="revolute"><parent link="{parent}"/><child link="link{i}"/>'
            f'<origin {place}/><axis xyz="{axis}"/>'
            '<limit lower="-4" upper="4" velocity="100" effort="1000"/></joint>',
        ]
        parent = f"link{i}"
    return "\n".join([*lines, "</robot>"])


def _text(numbers: np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def all_models() -> list[Model]:
    """Return all five models, or only the chain if example-robot-data is not installed."""
    models = [Model("chain", chain())]
    if not installed("example-robot-data"):
        return models
    fingers = ("panda_finger_joint1", "panda_finger_joint2")
    return [
        Model("ur5", _robot("ur_description/urdf/ur5_robot.urdf")),
        Model("panda", _robot("panda_description/urdf/panda.urdf", locked=fingers)),
        Model("solo", _robot("solo_description/robots/solo12.urdf"), floating=True),
        Model("talos", _robot("talos_data/robots/talos_reduced.urdf"), floating=True),
        *models,
    ]


def models_of(run: Run) -> list[Model]:
    """Return the models of a run; the smallest run has one fixed and one floating model."""
    models = all_models()
    return run.of(models, models, [m for m in models if m.name in ("panda", "solo")] or models)
