"""`python docs/pictures`: the moving picture and the chart of the README, by sarrus itself, from docs/speed.md."""

import re
from pathlib import Path

import numpy as np

import sarrus

HERE = Path(__file__).parent
FRAMES = 36
BLUE, ORANGE, PLATE = "#2f6f9f", "#c8642f", "#9cc4de"

# function and model of docs/speed.md by its headings, and what the chart calls them
BARS = (
    (
        "One state, inside C++",
        "Panda (7 dof)",
        "inverse_dynamics",
        "Panda, inverse dynamics, C++",
    ),
    (
        "One state, inside C++",
        "Panda (7 dof)",
        "forward_dynamics",
        "Panda, forward dynamics, C++",
    ),
    (
        "One state, inside C++",
        "Talos (38 dof)",
        "inverse_dynamics",
        "Talos, inverse dynamics, C++",
    ),
    (
        "One state, inside C++",
        "Talos (38 dof)",
        "forward_dynamics",
        "Talos, forward dynamics, C++",
    ),
    (
        "One state, called from Python",
        "Panda (7 dof)",
        "forward_dynamics",
        "Panda, forward dynamics, Python",
    ),
    (
        "10,000 states, one thread, called",
        "Panda (7 dof)",
        "inverse_dynamics",
        "Panda, inverse dynamics, 10,000 states",
    ),
    (
        "10,000 states, one thread, called",
        "Talos (38 dof)",
        "inverse_dynamics",
        "Talos, inverse dynamics, 10,000 states",
    ),
    (
        "10,000 states, one thread, called",
        "Talos (38 dof)",
        "forward_dynamics",
        "Talos, forward dynamics, 10,000 states",
    ),
    (
        "Constrained forward dynamics: one",
        "ladder(64), 192 rows",
        "",
        "64 four-bars in a row, C++",
    ),
    (
        "Constrained forward dynamics: one",
        "Stewart platform, 24 dof, 18 rows",
        "",
        "Stewart platform, C++",
    ),
)


def times_as_fast(heading, model, function):
    """The ratio to the fastest peer that a row of docs/speed.md tells."""
    text = (
        (HERE.parent / "speed.md")
        .read_text(encoding="utf-8")
        .split(f"**{heading}", 1)[1]
        .split("\n**", 1)[0]
    )
    row = next(r for r in text.splitlines() if r.startswith(f"| {model} | {function}"))
    ratio = float(re.search(r"\| ([\d.]+) \([\d.]+ to", row)[1])
    return ratio if heading.startswith("10,000") else 1.0 / ratio


def chart():
    """The chart as an SVG."""
    lines = []
    for k, (heading, model, function, label) in enumerate(BARS):
        ratio, y = times_as_fast(heading, model, function), 18 + 24 * k
        lines.append(
            f'<text x="262" y="{y + 12}" text-anchor="end">{label}</text>'
            f'<rect x="270" y="{y}" width="{24 * ratio:.0f}" height="16"/>'
            f'<text x="{276 + 24 * ratio:.0f}" y="{y + 12}">{ratio:.1f}</text>'
        )
    style = "text{font:12px sans-serif;fill:#333}rect{fill:#2f6f9f}line{stroke:#999;stroke-dasharray:3}"
    peer = '<line x1="294" y1="12" x2="294" y2="258"/><text x="294" y="9" text-anchor="middle">fastest peer = 1</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 264"><style>{style}</style>'
        f'<rect width="640" height="264" style="fill:#fff"/>{peer}{"".join(lines)}</svg>\n'
    )


def film(path):
    """Sarrus' linkage goes up and down on a straight line, a Strandbeest's leg walks; both led by one motor."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    turn = np.linspace(0.0, 2.0 * np.pi, FRAMES, endpoint=False)
    lift, leg = sarrus.mechanisms.sarrus_linkage(), sarrus.mechanisms.strandbeest_leg()
    angle = lift.joint_states(lift.assemble()).q["base_a"][0]
    up = lift.follow({"base_a": angle + 0.35 * np.sin(turn)}, near=lift.assemble())
    walk = leg.follow(
        {"motor": leg.joint_states(leg.assemble()).q["motor"][0] + turn},
        near=leg.assemble(),
    )

    figure = Figure(figsize=(6.0, 2.8), dpi=100)
    canvas = FigureCanvasAgg(figure)
    left, right = (
        figure.add_axes((0, 0, 0.5, 1), projection="3d"),
        figure.add_axes((0.52, 0.04, 0.46, 0.92)),
    )
    plates, bars, foot = (
        _plates(lift, up),
        sarrus.Skeleton(leg).segments_flat(walk),
        leg.pose(walk, "foot")[:, :3, 3],
    )
    palette = Image.new(
        "P", (1, 1)
    )  # white, the lines' and plates' colours, and what lies between them and white
    colours = [np.array([*bytes.fromhex(colour[1:])]) for colour in (BLUE, ORANGE, PLATE)]
    shades = [
        255 + (colour - 255) * share
        for colour in colours
        for share in (1.0, 0.75, 0.5, 0.25)
    ]
    palette.putpalette(np.rint([np.full(3, 255), *shades]).astype("u1").tobytes())
    frames = []
    for k in range(FRAMES):
        _draw_plates(left, plates, k)
        right.clear()
        right.plot(*np.vstack([foot, foot[:1]])[:, [0, 2]].T, color=ORANGE, linewidth=1.5)
        right.plot(*foot[k, [0, 2]], "o", color=ORANGE, markersize=6)
        for (a, _, b), (c, _, d) in bars[k]:
            right.plot([a, c], [b, d], color=BLUE, linewidth=2.5, solid_capstyle="round")
        low, high = (
            bars[..., [0, 2]].min(axis=(0, 1, 2)) - 0.03,
            bars[..., [0, 2]].max(axis=(0, 1, 2)) + 0.03,
        )
        right.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
        right.set_axis_off()
        canvas.draw()
        image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        frames.append(image.quantize(palette=palette, dither=Image.Dither.NONE))
    frames[0].save(
        path, save_all=True, append_images=frames[1:], duration=60, loop=0, optimize=True
    )


def _plates(robot, q):
    """Corners (frames, 4, 3) of each body, which reaches from one of its two hinges to the other."""
    skeleton = sarrus.Skeleton(robot)
    points, half = skeleton.joint_points(q), 0.2  # the gallery's plates are 0.4 m wide
    hinges = {name: np.stack([p - half * skeleton.joint_axis(q, name), p + half * skeleton.joint_axis(q, name)], axis=1)
              for name, p in points.items()}  # fmt: skip
    found = []
    for body in robot.bodies:
        first, second = (
            hinges[j.name]
            for j in robot.description.joints
            if body in (j.parent, j.child)
        )
        along = (first[:, 1] - first[:, 0])[0] @ (second[:, 1] - second[:, 0])[0]
        if abs(along) < 1e-9:  # the platform, a square: its hinges meet in a corner
            corners = (
                first[:, 0],
                first[:, 1],
                second[:, 1],
                first[:, 0] + second[:, 1] - first[:, 1],
            )
            found.append(np.stack(corners, axis=1))
        else:
            found.append(
                np.concatenate([first, second[:, ::-1] if along > 0 else second], axis=1)
            )
    return found


def _draw_plates(ax, plates, k):
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    ax.clear()
    ax.add_collection3d(
        Poly3DCollection(
            [p[k] for p in plates], facecolor=PLATE, edgecolor=BLUE, alpha=1.0
        )
    )
    corners = np.concatenate(plates, axis=1).reshape(-1, 3)
    ax.auto_scale_xyz(*corners.T)
    ax.set_box_aspect(np.ptp(corners, axis=0), zoom=1.25)
    ax.view_init(elev=22, azim=28)
    ax.set_axis_off()


if __name__ == "__main__":
    (HERE / "speed.svg").write_text(chart(), encoding="utf-8")
    film(HERE / "linkages.gif")
