"""An ankle driven by rods: two motors on the shank (here the ground) move a foot about two axes."""

import sarrus
from sarrus import Builder, Inertia, Revolute, Spherical, Universal

MOTORS = ["left_motor", "right_motor"]


def ankle(sole=0.08, crank=0.05, rod=0.24, side=0.05, mass=20.0, bend=0.3):
    b = Builder("ankle")
    box = Inertia.box(0.04 * mass, (0.2, 0.1, sole / 2))
    b.add_body("foot", box.transformed(sarrus.Transform(translation=(0.05, 0.0, -0.75 * sole))))
    b.add_joint("ankle", Universal("y", "x"), "ground", "foot")
    home = {"ankle": [-bend, 0.0]}
    for name, y in (("left", side), ("right", -side)):
        b.add_body(f"{name}_crank", Inertia.rod(0.005 * mass, (0, 0, 0), (-crank, 0, 0)))
        b.add_body(f"{name}_rod", Inertia.rod(0.005 * mass, (0, 0, 0), (0, 0, -rod)))
        motor = Revolute("y")
        b.add_joint(f"{name}_motor", motor, "ground", f"{name}_crank", at_parent=(0, y, rod), actuated=True)
        b.add_joint(f"{name}_rod", Universal("y", "x"), f"{name}_crank", f"{name}_rod", at_parent=(-crank, 0, 0))
        ends = {"at_parent": (0, 0, -rod), "at_child": (-crank, y, 0)}
        b.add_joint(f"{name}_ball", Spherical(), f"{name}_rod", "foot", loop=True, **ends)
        home |= {f"{name}_motor": -bend, f"{name}_rod": [bend, 0.0]}
    b.set_home(home)
    return b.build()
