"""The pictures and films of the gallery: each mechanism at home as the viewer draws it, and an animation of two seconds of it.

`python docs/gallery.py FOLDER` writes them without the site.
"""

import html
import re
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np

import sarrus
import thumbnails

SIZES = {"four_bar_ladder": {"n": 8}, "free_flyer": {"wheels": True}}
LED = {"hslm": ("slide1", "slide2", "slide3")}
FALLS = {"scissor_lift": 0.9}  # [s]; it is flat then
HEADING = re.compile(r"^(\S.*):$")
ROW = re.compile(r"^`(\w+)`\s+(.*)$")
TIMES = np.linspace(0.0, 2.0, 61)


def sections():
    """Headings of the gallery's docstring to (name, what it is)."""
    found, heading = {}, ""
    for line in sarrus.mechanisms.__doc__.splitlines():
        if match := HEADING.match(line):
            heading = match[1]
        elif match := ROW.match(line):
            found.setdefault(heading, []).append(match.groups())
    return found


def motion(name, robot):
    """Its motors turn or swing; what has none, or is not led by them, falls or is pushed."""
    home = robot.assemble()
    if robot.nc and robot.actuated:
        now = robot.joint_states(home).q
        # there may be more motors than freedoms
        led = LED.get(name, robot.actuated[: robot.mobility(home).degrees_of_freedom])
        turn = np.linspace(0.0, 2.0 * np.pi, len(TIMES))
        ways = [turn[None]] if len(led) == 1 else []
        for swing in (0.6, 0.3, 0.15, 0.05):
            for apart in (
                (2.1, 0.0) if len(led) > 1 else (0.0,)
            ):  # one after the other, or together
                phases = apart * np.arange(len(led))[:, None] + turn
                ways.append(swing * (np.sin(phases) - np.sin(phases[:, :1])))
        for way in ways:
            targets = {
                joint: now[joint][0] + w for joint, w in zip(led, way, strict=True)
            }
            with suppress(sarrus.SarrusError, ValueError):
                q = robot.follow(targets, near=home)
                return sarrus.Trajectory(
                    robot, TIMES, q, np.zeros((len(TIMES), robot.nv))
                )
    v = np.zeros(robot.nv)
    if np.abs(robot.forward_dynamics(home, v, v)).max(initial=0.0) < 1e-3:
        v = robot.project_velocity(
            home, 1.0 / np.arange(1.0, robot.nv + 1.0), metric="euclidean"
        )
        v /= np.abs(v).max()
    return sarrus.simulate(robot, home, v, FALLS.get(name, 2.0), limits="ignore")


def write(extra, made):
    """Write films into extra/films, pictures into extra/thumbnails, and the page's table of them into made/gallery.html."""
    for folder in ("films", "thumbnails"):
        (extra / folder).mkdir(parents=True, exist_ok=True)
    made.mkdir(parents=True, exist_ok=True)
    page = []
    for heading, rows in sections().items():
        page.append(f"<h2>{html.escape(heading)}</h2><div class='gallery'>")
        for name, what in rows:
            robot = getattr(sarrus.mechanisms, name)(**SIZES.get(name, {}))
            film = extra / "films" / f"{name}.html"
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # of limits and stiffness: these are pictures
                motion(name, robot).animate(film)
            reference = f"api/_made/mechanisms.html#sarrus.mechanisms.{name}"
            thumbnails.drawn(robot, robot.assemble()).save(
                extra / "thumbnails" / f"{name}.png", optimize=True
            )
            width, height = thumbnails.SIZE
            page.append(
                f"<figure id='{name}'><a href='films/{name}.html'><img src='thumbnails/{name}.png' "
                f"width='{width}' height='{height}' alt='{html.escape(robot.name)}'></a>"
                f"<figcaption><a href='{reference}'><code>{name}</code></a> {html.escape(what)}</figcaption></figure>"
            )
        page.append("</div>")
    (made / "gallery.html").write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[1]))
