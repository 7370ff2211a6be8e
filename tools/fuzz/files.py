"""Generator of programs that read files and run command lines, some of them valid, others with random changes."""

from __future__ import annotations

import argparse
import importlib.util
import random
import re

import sarrus
import sarrus.cli

from .calls import Target
from .pieces import GALLERY, NUMBERS, mechanism

WITH_USD = importlib.util.find_spec("pxr") is not None
PIECES = (
    b"<!DOCTYPE r [<!ENTITY a 'b'>]>", b"&a;", b"<!-- -- -->", b"<!-- --", b"x" * 20000, b"<![CDATA[", b"\0", b"\xff", b"\xef\xbb\xbf", b"<x:y/>", b"<?xml version='9'?>",
    b"<?xml version='1.0' encoding='utf-16'?>", b"<?xml version='1.0' encoding='no-such'?>", b"</link>", b"<link/>", b"<" * 300, b"<a>" * 300, b"<include file='a.xml'/>", b"<body/>", b"</body>", b"<freejoint/>", b"<default class='c'>",
)  # fmt: skip


def urdf(rng: random.Random) -> list[str]:
    """Return a valid robot, element by element."""
    n = rng.randint(1, 5)

    def x(low: float = -1.0) -> str:
        return rng.choice((f"{rng.uniform(low, 1):.3g}", "0", "1e-3", "1"))

    def origin() -> str:
        return rng.choice(
            ("", f'<origin xyz="{x()} {x()} {x()}" rpy="{x()} {x()} {x()}"/>', f'<origin xyz="{x()} 0 0"/>')
        )

    lines = [f'<robot name="{rng.choice(("r", "ä", "r 2"))}">']
    names = [rng.choice(("link", "ground", "l")) + (str(k) if k else "") for k in range(n)]
    joint = [f"joint{k}" for k in range(n)]
    for name in names:
        lines.append(f'<link name="{name}">')
        if rng.random() < 0.8:
            m = abs(float(x())) + 0.1
            lines += ["<inertial>", origin(), f'<mass value="{m}"/>']
            lines += [f'<inertia ixx="{m}" iyy="{m}" izz="{m}" ixy="0" ixz="0" iyz="{0.01 * m}"/>', "</inertial>"]
        if rng.random() < 0.3:
            shape = rng.choice(
                (
                    '<box size="1 2 3"/>',
                    '<sphere radius="1"/>',
                    '<cylinder radius="1" length="2"/>',
                    '<mesh filename="a.stl"/>',
                )
            )
            lines += [
                "<visual>",
                origin(),
                f"<geometry>{shape}</geometry>",
                '<material name="m"><color rgba="1 0 0 1"/></material>',
                "</visual>",
            ]
        lines.append("</link>")
    for k in range(1, n):
        kind = rng.choice(("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "ball"))
        lines += [
            f'<joint name="{joint[k]}" type="{kind}">',
            origin(),
            f'<parent link="{names[rng.randrange(k)]}"/>',
            f'<child link="{names[k]}"/>',
        ]
        lines += rng.choice(([], [f'<axis xyz="{rng.choice(("1 0 0", "0 1 0", "0 0.6 -0.8"))}"/>']))
        lines += rng.choice(([], [f'<limit lower="-1" upper="{abs(float(x()))}" effort="{x(0)}" velocity="1"/>']))
        lines += rng.choice(([], [f'<dynamics damping="{x(0)}" friction="{x(0)}"/>']))
        if k > 1 and rng.random() < 0.3:
            lines.append(
                f'<mimic joint="{joint[rng.randrange(1, k)]}" multiplier="{rng.choice((1, -2, 0.5))}" offset="0.1"/>'
            )
        lines.append("</joint>")
    if n > 2 and rng.random() < 0.4:
        a, b = rng.sample(names, 2)
        kind, x, y = rng.choice(("revolute", "spherical", "fixed")), origin(), origin()
        lines += rng.choice(
            (
                [f'<loop name="c" type="{kind}">', f'<predecessor link="{a}">', x, "</predecessor>", f'<successor link="{b}">', y, "</successor>", "</loop>"],
                [f'<loop_joint name="c" type="{kind}">', f'<link1 link="{a}" xyz="1 0 0"/>', f'<link1 link="{b}" xyz="0 1 0"/>', "</loop_joint>"],
                ["<gazebo>", f'<joint name="c" type="{kind.replace("spherical", "ball")}">', f"<parent>{a}</parent>", f"<child>{b}</child>",
                 "<axis>", "<xyz>0 0 1</xyz>", "</axis>", "</joint>", "</gazebo>"],
                ['<transmission name="t">', f'<joint name="{joint[1]}"/>', "</transmission>"],
            )
        )  # fmt: skip
    return [line for line in [*lines, "</robot>"] if line]


def mjcf(rng: random.Random) -> list[str]:
    """Return a valid model, element by element."""

    def x(low: float = -1.0) -> str:
        return rng.choice((f"{rng.uniform(low, 1):.3g}", "0.5", "1e-3", "1"))

    def xyz() -> str:
        return f"{x()} {x()} {x()}"

    def placed() -> str:
        turned = (f'quat="1 {xyz()}"', f'euler="{xyz()}"', f'axisangle="{x()} {x()} 1 {x()}"', 'zaxis="0 1 1"', "")
        return f'pos="{xyz()}" {rng.choice(turned)}'

    def geom() -> str:
        shape = (
            f'size="{x(0.1)}"',
            'type="box" size="1 2 3"',
            'type="capsule" size=".1" fromto="0 0 0 1 1 0"',
            'type="ellipsoid" size="1 1 2"',
        )
        return f"<geom {rng.choice(shape)} {rng.choice(('', 'mass=' + chr(34) + '2' + chr(34), 'rgba=' + chr(34) + '1 0 0 1' + chr(34)))}/>"

    lines = [
        "<mujoco>",
        f'<compiler angle="{rng.choice(("radian", "degree"))}" eulerseq="{rng.choice(("xyz", "ZYx"))}"/>',
    ]
    lines += [
        '<default><geom density="300"/>',
        '<default class="c"><joint armature="0.1" damping="1 0 0"/></default>',
        "</default>",
    ]
    lines += ["<worldbody>", '<site name="w" pos="0 0 1"/>']
    n, depth, joints = rng.randint(1, 5), 0, []
    for k in range(n):
        while depth and rng.random() < 0.4:
            lines.append("</body>")
            depth -= 1
        lines += [
            f'<body name="b{k}" {placed()} childclass="{rng.choice(("c", "main"))}">',
            geom(),
            f'<site name="s{k}" {placed()}/>',
        ]
        depth += 1
        if depth == 1 and rng.random() < 0.3:
            lines.append("<freejoint/>")
            continue
        for first in (True, False)[: rng.choice((0, 1, 1, 1, 2))]:
            kind = rng.choice(
                ("hinge", "slide", "ball") if first else ("slide",)
            )  # parameters for which the mass matrix is always regular
            terms = rng.choice(
                (
                    "",
                    'ref="0.2" range="-1 1"',
                    'stiffness="2" springref="0.1"',
                    'springdamper="0.5 0.7"',
                    'frictionloss="1"',
                )
            )
            axis = f"{x()} {x()} 1" if first else f"1 {x()} 0"  # directions such that two slides are never parallel
            lines.append(f'<joint name="j{len(joints)}" type="{kind}" pos="{xyz()}" axis="{axis}" {terms}/>')
            joints.append((f"j{len(joints)}", kind))
    lines += ["</body>"] * depth + ["</worldbody>"]
    scalar, last = [name for name, kind in joints if kind != "ball"], n - 1
    lines += [
        "<equality>",
        f'<connect body1="b{last}" anchor="{xyz()}"/>',
        f'<weld site1="s{last}" site2="w" active="false"/>',
    ]
    if len(scalar) > 1:
        lines.append(f'<joint joint1="{scalar[0]}" joint2="{scalar[1]}" polycoef="{xyz()}"/>')
    lines.append("</equality>")
    if scalar:
        lines += ["<tendon>", '<fixed name="t">', f'<joint joint="{scalar[0]}" coef="{x()}"/>', "</fixed>", "</tendon>"]
        lines += [
            "<actuator>",
            f'<motor joint="{scalar[0]}" gear="3" ctrlrange="-1 1" damping="{rng.choice(("0", "1", "1 2", "1 0 3"))}"/>',
            '<position tendon="t" kp="2"/>',
            "</actuator>",
        ]
    lines += ["<keyframe>", '<key name="home"/>', "</keyframe>"]
    return [*lines, "</mujoco>"]


def sdf(rng: random.Random) -> list[str]:
    """Return a valid model with any number of loops, element by element."""
    n = rng.randint(1, 5)
    links = [f"l{k}" for k in range(n)]
    frames = list(links)

    def pose(*to: str) -> str:
        told = f' relative_to="{rng.choice(to)}"' if to and rng.random() < 0.5 else ""
        degrees = rng.choice(("", ' degrees="true"'))
        return f"<pose{told}{degrees}>{' '.join(f'{rng.uniform(-1, 1):.3g}' for _ in range(6))}</pose>"

    lines = [f'<sdf version="1.{rng.randint(7, 12)}">', '<model name="m">', rng.choice(("", pose()))]
    for k, name in enumerate(links):
        lines += [f'<link name="{name}">', pose(*links[:k])]
        lines += rng.choice(
            (
                [],
                ["<inertial>", pose(), "<mass>2</mass>", "<inertia>", "<ixx>1</ixx>", "<iyz>0.1</iyz>", "</inertia>", "</inertial>"],
                ['<inertial auto="true"/>', '<collision name="c">', pose(), "<geometry>", "<box>", "<size>1 2 3</size>", "</box>", "</geometry>",
                 "</collision>"],
            )
        )  # fmt: skip
        lines.append("</link>")
    if rng.random() < 0.3:
        frames.append("f")
        lines += [f'<frame name="f" attached_to="{rng.choice(links)}">', pose(*links), "</frame>"]
    for k in range(rng.randrange(2 * n) if n > 1 else 0):
        parent, child = rng.sample(links, 2)
        kind = rng.choice(("revolute", "continuous", "prismatic", "fixed", "screw", "ball", "universal", "revolute2"))
        lines += [f'<joint name="j{k}" type="{kind}">', rng.choice(("", pose(*frames)))]
        lines += [f"<parent>{rng.choice((parent, 'world'))}</parent>", f"<child>{child}</child>"]
        lines += ["<screw_thread_pitch>0.1</screw_thread_pitch>"] * (kind == "screw")
        lines += [
            "<axis>",
            f'<xyz expressed_in="{rng.choice(("", "__model__", *frames))}">0 0.6 0.8</xyz>',
            "<limit>",
            "<effort>0</effort>",
        ]
        lines += ["</limit>", "<dynamics>", "<damping>1</damping>", "</dynamics>", "</axis>", "<axis2/>", "</joint>"]
    return [line for line in [*lines, "</model>", "</sdf>"] if line]


def usd(rng: random.Random) -> list[str]:
    """Return a valid stage with any number of loops, line by line."""
    n = rng.randint(1, 5)

    def xyz() -> str:
        return f"({', '.join(f'{rng.uniform(-1, 1):.3g}' for _ in range(3))})"

    def quaternion() -> str:
        return rng.choice(("(1, 0, 0, 0)", "(0.6, 0, 0.8, 0)", "(0, 0, 0, 1)"))

    lines = ["#usda 1.0", "(", 'defaultPrim = "r"', f"metersPerUnit = {rng.choice(('1', '0.01'))}"]
    lines += [
        f"kilogramsPerUnit = {rng.choice(('1', '0.001'))}",
        f'upAxis = "{rng.choice("YZ")}"',
        ")",
        'def Xform "r"',
        "{",
    ]
    for k in range(n):
        lines += [f'def Xform "l{k}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])', "{"]
        lines += [
            "float physics:mass = 2",
            "float3 physics:diagonalInertia = (1, 1.5, 2)",
            f"point3f physics:centerOfMass = {xyz()}",
        ]
        lines += [f"double3 xformOp:translate = {xyz()}", f"quatd xformOp:orient = {quaternion()}"]
        lines += ['uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]']
        shape = rng.choice(("", "Cube", "Sphere", "Cylinder", "Capsule"))
        lines += [f'def {shape} "c" (prepend apiSchemas = ["PhysicsCollisionAPI"])', "{", "}"] * bool(shape)
        lines.append("}")
    for k in range(rng.randrange(2 * n) if n > 1 else 0):
        parent, child = rng.sample(range(n), 2)
        kind = rng.choice(("Revolute", "Prismatic", "Spherical", "Fixed", "Distance", ""))
        lines += [f'def Physics{kind}Joint "j{k}"', "{", f"rel physics:body1 = </r/l{child}>"]
        lines += [f"rel physics:body0 = </r/l{parent}>"] * (rng.random() < 0.8)
        lines += [f'uniform token physics:axis = "{rng.choice("XYZ")}"'] * (
            kind in ("Revolute", "Prismatic", "Spherical")
        )
        lines += ["float physics:lowerLimit = -30", "float physics:upperLimit = 40"] * (
            kind in ("Revolute", "Prismatic")
        )
        lines += ["float physics:minDistance = 1", "float physics:maxDistance = 1"] * (kind == "Distance")
        for side in (0, 1):
            lines += [f"point3f physics:localPos{side} = {xyz()}", f"quatf physics:localRot{side} = {quaternion()}"]
        lines.append("}")
    return [*lines, "}"]


def mutated(lines: list[str], rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 5))):
        at, way = rng.randrange(len(lines)), rng.randrange(6)
        quoted = re.findall(r'"([^"]*)"|>([^<]+)<', lines[at])
        if way <= 2 and quoted:
            new = rng.choice((*NUMBERS, *re.findall(r'name="([^"]*)"', "".join(lines))))
            old = "".join(rng.choice(quoted))
            words = old.split() or [old]
            words[rng.randrange(len(words))] = new
            for left, right in ('""', "><"):
                lines[at] = lines[at].replace(f"{left}{old}{right}", f"{left}{' '.join(words)}{right}", 1)
        elif way <= 2:
            lines[at] = re.sub(r"-?\b[0-9][0-9.e-]*", rng.choice(NUMBERS), lines[at], count=1)
        elif way == 3:
            lines[at] = ""
        elif way == 4:
            lines.insert(rng.randrange(len(lines)), lines[at])
        else:
            lines[at] = re.sub(
                r"\w+",
                rng.choice(
                    (
                        "link",
                        "joint",
                        "x",
                        "name",
                        "mimic",
                        "type",
                        "ground",
                        "frame",
                        "pose",
                        "body",
                        "site",
                        "class",
                        "main",
                        "world",
                    )
                ),
                lines[at],
                count=1,
            )
    text = "\n".join(line for line in lines if line).encode(
        *rng.choice(((), (), (), ("utf-16",), ("latin-1", "replace")))
    )
    for _ in range(rng.choice((0, 0, 0, 1, 3))):
        at = rng.randrange(len(text) + 1)
        text = rng.choice(
            (
                text[:at],
                text[:at] + rng.choice(PIECES) + text[at:],
                text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :],
            )
        )
    return text


def file_program(rng: random.Random) -> tuple[list[str], Target]:
    read = rng.randrange(4)
    if read == 3:
        lines = [
            f"m = mechanism({rng.choice(GALLERY)!r})",
            f"r = rewritten(m, {rng.choice(('.urdf', '.xml', '.sdf', '.json', *('.usda',) * WITH_USD))!r})",
        ]
        return [*lines, "touch(r)"], Target("load", sarrus.load, None, "")
    if read == 0:
        make = rng.choice((urdf, sdf, mjcf, *(usd,) * WITH_USD))
        lines = make(rng)
        for _ in range(rng.choice((0, 0, 1, 3)) if make is not usd else 0):
            lines.insert(
                rng.randrange(1, len(lines)), rng.choice(("<!-- ---- -->", "<!-- a -- b --->", "<!-- <link> -->"))
            )
        valid, floating = rng.random() < 0.15, None if make in (mjcf, usd) else rng.choice((None, False, True))
        text = repr("\n".join(lines) if valid else mutated(lines, rng))
        call = Target("loads", sarrus.loads, None, "")
        return [f"r = {'valid' if valid else 'sarrus.loads'}({text}, floating_base={floating})", "touch(r)"], call
    path = rng.choice(("run.npz", "run.csv"))
    given = rng.choice(("m", "m", "m", "None", "mechanism('tree 1')"))
    lines = [f"m = mechanism({rng.choice(GALLERY)!r})", f"path = spoil(saved(m, {path!r}), {rng.randrange(2**32)})"]
    return [*lines, f"r = sarrus.Trajectory.load(path, mechanism={given})", "look(r)"], Target(
        "load", sarrus.Trajectory.load, sarrus.Trajectory, ""
    )


def command_program(rng: random.Random) -> tuple[list[str], Target]:
    commands = next(a for a in sarrus.cli._parser()._actions if isinstance(a, argparse._SubParsersAction)).choices
    name = rng.choice([name for name in commands if name != "bench"] + ["simulate"] * 4)
    model = rng.choice(
        (*sarrus.mechanisms.__all__, "robot.urdf", "bad.urdf", "no.urdf", "x", ".", "", "robot.txt", "\udc80")
    )
    words, m = [name], sarrus.mechanisms.pendulum() if model not in sarrus.mechanisms.__all__ else mechanism(model)
    for action in commands[name]._actions:
        if action.nargs == 0:
            words += action.option_strings[-1:] if rng.random() < 0.05 and action.dest != "traceback" else []
            continue
        if action.option_strings and rng.random() < 0.7:
            continue
        joint = rng.choice((*m.joints, "x")) if m.joints else "x"
        odd = (
            "",
            "x",
            "-1",
            "0",
            "nan",
            "inf",
            "1e300",
            "1e-300",
            "0.003",
            "٣",
            "run.png",
            "no/such/run.csv",
            ".",
            "/dev/full",
            "a=b=1",
            "é",
        )
        if action.choices:
            values = [*action.choices, "x"]
        elif action.dest in ("model", "name"):
            values = [model]
        elif "=" in str(action.metavar):
            values = [f"{joint}={x}" for x in ("0.1", "0", "1,0,0,0", "nan", "1e300", "x", "", "5e-324", "-3.2")]
        elif action.metavar == "FILE":
            values = [
                "run.png",
                "run.csv",
                "run.npz",
                "run.gif",
                "run.html",
                "no/run.csv",
                "/dev/full.csv",
                "/proc/run.npz",
                "run.json",
            ]
            odd = ("x", "", ".csv")
        elif action.dest == "plot_quantity":
            values = ["q", "v", "a", "tau", "energy", "loop_error", "momentum", "reactions", joint]
        else:
            values = (
                ["0.003", "0", "0.02", "1e-3", "1e-2", str(action.default)]
                if action.dest != "time"
                else ["0.003", "0.02", "0"]
            )
        count = rng.choice((1, 1, 2)) if action.nargs == "+" else 1
        given = [
            rng.choice(odd) if rng.random() < 0.1 and action.dest != "model" else rng.choice(values)
            for _ in range(count)
        ]
        words += [*action.option_strings[-1:], *given]
    if "--time" not in words and name == "simulate":
        words += ["--time", "0.01"]
    return [f"r = command({words!r})"], Target("main", sarrus.cli.main, None, "")
