"""Figures of a trajectory: curves, films, pages."""

import base64
import html
import importlib.util
import json
import re
import shutil
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sarrus
from sarrus.figures import canvas
from sarrus.simulation.trajectory import Trajectory
from tests.trajectories import fourbar_run


@pytest.mark.parametrize(
    ("what", "label", "names"),
    [
        ("q", "joint coordinates [rad]", ["motor", "pin1", "pivot"]),
        ("v", "joint velocities [rad/s]", ["motor", "pin1", "pivot"]),
        ("a", "joint accelerations [rad/s²]", ["motor", "pin1", "pivot"]),
        ("tau", "joint forces [N m]", ["motor", "pin1", "pivot"]),
        ("energy", "energy [J]", ["total", "kinetic", "potential"]),
        ("loop_error", "loop error [rad, m]", ["loop_error"]),
        ("reactions", "force carried [N]", ["motor", "pin1", "pivot", "pin2"]),
        ("motor", "motor [rad]", ["motor"]),
        ("pin2", "pin2 [rad]", ["pin2"]),
        ("coupler", "position of coupler [m]", ["coupler x", "coupler y", "coupler z"]),
        (["motor", "pivot"], "motor, pivot [rad]", ["motor", "pivot"]),
    ],
)
def test_plot(what, label, names, pyplot):
    run = fourbar_run()
    ax = run.plot(what)
    ax.figure.canvas.draw()
    assert ax.get_ylabel() == label and ax.get_xlabel() == "t [s]"
    assert [line.get_label() for line in ax.lines] == names
    assert all(len(line.get_xdata()) == len(run) for line in ax.lines)
    assert tuple(ax.figure.get_size_inches()) == (6.4, 4.0)
    # each curve can be told: by a name at its end or in a legend, unless it is alone
    legend = [text.get_text() for text in ax.get_legend().get_texts()] if ax.get_legend() else []
    told = [text.get_text() for text in ax.texts] + legend
    assert sorted(told) == (sorted(names) if len(names) > 1 else [])
    # no two names at the ends overlap, none leaves the figure, and all can be read
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    assert all(box.x1 <= ax.figure.bbox.x1 for box in boxes)
    words = [*ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label]
    assert min(word.get_fontsize() for word in words) >= 10
    styles = {(str(line._dash_pattern), line.get_color()) for line in ax.lines}
    assert len(styles) == len(names)


def test_plot_shows_the_numbers(pyplot):
    run = fourbar_run()
    for what, k, wanted in (
        ("q", 1, run.q[:, 1]),
        ("v", 2, run.v[:, 2]),
        ("energy", 0, run.energy),
        ("loop_error", 0, run.loop_error),
        ("reactions", 3, np.linalg.norm(run.reactions.wrenches["pin2"][:, 3:], axis=1)),
        ("pin2", 0, run.joint("pin2")[:, 0]),
        ("coupler", 0, run.frame("coupler")[:, 0, 3]),
    ):
        assert_array_equal(run.plot(what).lines[k].get_ydata(), wanted)
        pyplot.close("all")


def test_plot_names_coordinates_of_all_joints(mixed, pyplot):
    robot = mixed.mechanism
    for what, count in (("q", robot.nq), ("v", robot.nv), ("a", robot.nv), ("tau", robot.nv)):
        labels = [line.get_label() for ax in mixed.plot(what).figure.axes for line in ax.lines]
        assert len(labels) == count == len(set(labels))
        pyplot.close("all")
    assert len(mixed.plot("reactions").lines) == len(robot.joints)
    free = next(name for name in robot.joints if robot.joint(name).kind == "Free")
    names = [f"{free} {part}" for part in ("qx", "qy", "qz", "qw", "x", "y", "z")]
    assert [line.get_label() for ax in mixed.plot(free).figure.axes for line in ax.lines] == names


def test_plot_has_one_unit_on_an_axes(pyplot):
    robot = sarrus.mechanisms.slider_crank()
    run = sarrus.simulate(robot, robot.assemble(), np.zeros(robot.nv), 0.1)
    for what, panels in (
        ("q", {"joint coordinates [rad]": ["motor", "pin"], "guide [m]": ["guide"]}),
        ("a", {"joint accelerations [rad/s²]": ["motor", "pin"], "guide [m/s²]": ["guide"]}),
        (["pin", "energy"], {"pin [rad]": ["pin"], "energy [J]": ["total", "kinetic", "potential"]}),
        ("momentum", {f"momentum [{unit}]": [f"{kind} {axis}" for axis in "xyz"]
                      for kind, unit in (("angular", "kg m²/s"), ("linear", "kg m/s"))}),
    ):  # fmt: skip
        upper = run.plot(what)
        axes = upper.figure.axes
        assert upper is axes[0] and axes[-1].get_xlabel() == "t [s]"
        assert {ax.get_ylabel(): [line.get_label() for line in ax.lines] for ax in axes} == panels
    assert_array_equal(run.plot("q").figure.axes[1].lines[0].get_ydata(), run.joint("guide")[:, 0])


def test_two_units_face_each_other(pyplot):
    """The colours of the axes assign the lines; more lines or units have panels."""
    robot = sarrus.mechanisms.slider_crank()
    run = sarrus.simulate(robot, robot.assemble(), np.zeros(robot.nv), 0.1)
    given = pyplot.figure().subplots()
    for ax in (None, given):
        left, right = run.plot("q", ax=ax).figure.axes
        assert left.get_position().bounds == right.get_position().bounds
        for side, colour in ((left, "black"), (right, canvas.COLOURS[0])):
            assert {side.yaxis.label.get_color(), *(line.get_color() for line in side.lines)} == {colour}
        assert len({line.get_linestyle() for line in left.lines}) == 2
        named = [text.get_text() for text in left.get_legend().get_texts()]
        assert named == ["motor", "pin", "guide"] and left.get_shared_x_axes().joined(left, right)
    assert run.plot(["motor", "guide"]).get_legend() is None  # the axes say it
    many = fourbar_run(11)
    for what in (["q", "energy", "tau"], ["reactions", "motor"]):
        axes = many.plot(what).figure.axes
        assert len({ax.get_position().y0 for ax in axes}) == len(axes) > 1
        with pytest.raises(ValueError, match=r"several units, .* omit ax="):
            many.plot(what, ax=pyplot.figure().subplots())


def test_plot_shows_what_all_pins_carry(pyplot):
    """Loads of tree joints too, with the loop closed."""
    run = fourbar_run(11)
    robot = run.mechanism
    lines = {line.get_label(): line.get_ydata() for line in run.plot("reactions").lines}
    assert sorted(lines) == sorted(joint.name for joint in robot.description.joints)
    pins = (
        sarrus.formulations.reactions(robot, run.q, run.v, run.a, multipliers=run.reactions.multipliers)
        | run.reactions.wrenches
    )
    for name, force in lines.items():
        assert_array_equal(force, np.linalg.norm(pins[name][:, 3:], axis=1))
    opened = sarrus.formulations.reactions(robot, run.q, run.v, run.a, multipliers=np.zeros(robot.nc))
    assert np.abs(lines["pivot"] - np.linalg.norm(opened["pivot"][:, 3:], axis=1)).max() > 1.0


def test_plot_into_given_axes(pyplot):
    run = fourbar_run()
    figure, (left, right) = pyplot.subplots(1, 2)
    assert run.plot("energy", ax=left) is left
    run.plot("motor", ax=right)
    run.plot("pivot", ax=right)
    assert len(right.lines) == 2 and pyplot.get_fignums() == [figure.number]
    # nothing would make room for names between the two
    assert left.get_legend() is not None and not left.texts


def test_plot_of_nothing_known(pyplot):
    with pytest.raises(
        sarrus.NameNotFoundError, match="no quantity, joint or frame is named 'enrgy'; did you mean 'energy'"
    ):
        fourbar_run(3).plot("enrgy")


def test_names_that_would_collide_go_to_a_legend(pyplot):
    builder = sarrus.Builder("three")
    for k in range(3):
        builder.add_body(f"rod{k}", sarrus.Inertia.rod(1.0, [0, 0, 0], [1, 0, 0], 0.1))
        builder.add_joint(f"pin{k}", sarrus.Revolute("y"), "ground", f"rod{k}")
    robot, t = builder.build(), np.linspace(0.0, 1.0, 20)

    def ends(*at):
        q = t[:, None] * at
        return Trajectory(robot, t, q, np.zeros_like(q)).plot()

    assert ends(0.0, 1.0, 2.0).get_legend() is None
    assert ends(1.0, 1.05, 2.0).get_legend() is None  # a little room is made
    for ax in (ends(1.0, 1.0, 1.0), ends(0.0, 1.0, np.nan)):
        assert ax.get_legend() is not None and not ax.texts


@pytest.mark.parametrize("missing", ["plot", "animate"])
def test_without_matplotlib(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        getattr(fourbar_run(3), missing)()


def test_gif(pyplot, tmp_path):
    from PIL import Image

    fourbar_run(11).animate(tmp_path / "run.gif", speed=0.5, frames_per_second=5)
    with Image.open(tmp_path / "run.gif") as film:
        # two seconds of five pictures, and the last
        assert (film.format, film.n_frames, film.size[0]) == ("GIF", 11, 640)
        assert film.size[1] % 2 == 0  # as films want
        pictures = []
        for k in range(film.n_frames):
            film.seek(k)
            pictures.append(np.asarray(film.convert("L")))
    assert all((a != b).any() for a, b in zip(pictures[1:], pictures))
    # what moves fills the picture, but for margins and the line above
    for along, inked in enumerate((np.min(pictures, axis=0)[40:] < 200).any(axis=k) for k in (0, 1)):
        assert np.ptp(np.flatnonzero(inked)) > 0.8 * (len(inked) - 40 * along)


def embedded(page):
    """Return the data that the page's script gets."""
    data = json.loads(re.search(r"const data = (.*);", page)[1])
    return data, {name: np.frombuffer(base64.b64decode(data[name]), "<i2") for name in ("bars", "joints", "anchors")}


def test_html(pyplot, tmp_path):
    run = fourbar_run()
    run.animate(tmp_path / "run.html", frames_per_second=10)
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|src=|<link|@import|url\(", page)  # nothing is fetched
    data, numbers = embedded(page)
    assert data["t"] == [k / 10 for k in range(11)]
    rods = numbers["bars"].reshape(11, 3, 2, 3).astype(float)
    length = np.linalg.norm(rods[..., 1, :] - rods[..., 0, :], axis=-1)
    # crank, coupler and rocker keep their lengths, to the rounding of both ends
    assert_allclose(length / length[0, 1] * 1.1, np.tile([0.4, 1.1, 0.9], (11, 1)), rtol=0, atol=2e-4)


def test_a_name_cannot_break_the_page(pyplot, tmp_path):
    builder = sarrus.Builder("</title><script>alert(1)</script>")
    builder.add_body("rod", sarrus.Inertia.rod(1.0, [0, 0, 0], [1, 0, 0], 0.1))
    builder.add_joint("pin", sarrus.Revolute("y"), "ground", "rod")
    film = Trajectory(builder.build(), [0.0, 0.1], [[0.0], [1.0]], [[0.0], [0.0]]).animate(tmp_path / "run.html")
    assert "<script>alert" not in (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "<script>" not in film._repr_html_()  # it stands in an attribute of a frame


def test_dollars_in_names_begin_no_formula(pyplot, tmp_path):
    """Names with dollars in curves, films, pictures and polygons begin no formula."""
    b = sarrus.Builder(r"$\undefined$")
    for k in range(2):
        b.add_body(rf"$\body$ {k}", sarrus.Inertia.sphere(1.0, 0.1))
        b.add_joint(
            rf"$\joint$ {k}",
            sarrus.Revolute("y"),
            rf"$\body$ {k - 1}" if k else "ground",
            rf"$\body$ {k}",
            at_child=(0, 0, 0.2),
        )
    robot = b.build()
    run = sarrus.simulate(robot, [0.3, 0.1], [0.0, 0.0], 0.05)
    runs = sarrus.simulate_many(robot, [[0.3, 0.1], [0.2, 0.1]], [0.0, 0.0], 0.05)
    name = robot.joints[0]
    for axes in (run.plot("q"), run.plot(name), run.plot("energy"), run.plot_phase(), run.plot("joint_wrenches"), runs.plot("q"),
                 robot.plot(labels=True), robot.plot([0.3, 0.1], [1.0, 1.0], labels=True), robot.plot(drive=name)._fig.axes[0]):  # fmt: skip
        axes.figure.savefig(tmp_path / "x.png")
    run.animate(tmp_path / "x.gif", labels=True, forces=[name])
    drawn = run.plot("q")
    texts = [*drawn.texts, *(drawn.get_legend().get_texts() if drawn.get_legend() else ())]
    assert {text.get_text().replace(r"\$", "$") for text in texts} == set(robot.joints)


def test_names_in_a_page_are_text(pyplot, tmp_path):
    """A name is not substituted in another, and no name begins a tag or a comment."""
    name = "<!--<script><img src=x onerror=alert(1)>$TITLE"
    builder = sarrus.Builder("$DATA")
    builder.add_body(name, sarrus.Inertia.rod(1.0, [0, 0, 0], [1, 0, 0], 0.1))
    builder.add_joint("pin", sarrus.Revolute("y"), "ground", name)
    run = Trajectory(builder.build(), [0.0, 0.1], [[0.0], [1.0]], [[0.0], [0.0]])
    film = run.animate(tmp_path / "run.html", labels=True)
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "onerror" not in re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert page.count("<script") == 1 and "<!--" not in page and "<title>$DATA</title>" in page
    assert embedded(page)[0]["labels"] == [[name, 0]]
    assert html.unescape(film._repr_html_().split('"')[1]) == page


@pytest.mark.parametrize(("rate", "speed", "pictures"), [(30.0, 1.0, 31), (60.0, 3.0, 17), (7.0, 0.7, 11)])
def test_a_gif_takes_the_time_of_the_motion(pyplot, tmp_path, rate, speed, pictures):
    image = pytest.importorskip("PIL.Image")
    fourbar_run().animate(tmp_path / "run.gif", frames_per_second=rate, speed=speed)
    with image.open(tmp_path / "run.gif") as film:
        durations = []
        for k in range(film.n_frames):
            film.seek(k)
            durations.append(film.info["duration"])
    assert len(durations) == pictures and min(durations) >= 20
    assert abs(sum(durations[:-1]) - 1000.0 / speed) <= 5.0


def test_notebooks_show_the_film(pyplot):
    film = fourbar_run(3).animate()
    shown = film._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and "const data" in shown
    assert not pyplot.get_fignums()  # which a notebook would show as well


def test_mp4(pyplot, tmp_path, monkeypatch):
    from matplotlib.animation import FFMpegWriter

    if FFMpegWriter.isAvailable():
        fourbar_run(3).animate(tmp_path / "run.mp4", frames_per_second=10)
        assert (tmp_path / "run.mp4").read_bytes()[4:8] == b"ftyp"
    monkeypatch.setattr(FFMpegWriter, "isAvailable", classmethod(lambda cls: False))
    with pytest.raises(FileNotFoundError, match="ffmpeg"):
        fourbar_run(3).animate(tmp_path / "none.mp4")


def test_animate_refuses(pyplot):
    run = fourbar_run(3)
    with pytest.raises(ValueError, match=r"\.gif, \.mp4 or \.html"):
        run.animate("run.avi")
    for bad in ({"speed": 0.0}, {"frames_per_second": np.inf}):
        with pytest.raises(ValueError, match="must be positive"):
            run.animate(**bad)
    nothing = Trajectory(run.mechanism, [0.0], np.full((1, 3), np.nan), np.zeros((1, 3)))
    with pytest.raises(ValueError, match="nothing to show"):
        nothing.animate()


def test_a_run_that_diverged_is_shown_up_to_there(pyplot, tmp_path):
    whole = fourbar_run(11)
    v = whole.v.copy()
    v[6:] = np.inf
    Trajectory(whole.mechanism, whole.t, whole.q, v).animate(tmp_path / "run.html", frames_per_second=10)
    data, numbers = embedded((tmp_path / "run.html").read_text(encoding="utf-8"))
    assert data["t"][-1] == 0.5


def test_the_page_plays(pyplot, tmp_path):
    """In a browser it draws and plays, dragging rotates it, and it needs no network."""
    sync_api = pytest.importorskip("playwright.sync_api")
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no browser")
    fourbar_run().animate(tmp_path / "run.html")
    said, asked = [], []
    with sync_api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 390, "height": 700})
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda message: said.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "run.html").as_uri())
        page.wait_for_function("document.querySelector('input').value > 2")
        page.click("button")
        assert page.inner_text("button") == "Play"

        def picture():
            # after the next frame, because a busy browser draws later than events
            drawn = "done => requestAnimationFrame(() => done(document.querySelector('canvas').toDataURL()))"
            return page.evaluate(f"new Promise({drawn})")

        def drag(x, y):
            page.mouse.move(200, 300)
            page.mouse.down()
            page.mouse.move(200 + x, 300 + y, steps=4)
            page.mouse.up()
            return picture()

        still = picture()
        assert drag(60, 0) != still
        assert drag(-60, 0) == still
        turned = drag(0, 30)
        page.fill("input", "20")
        assert page.inner_text("output") == f"{20 / 30:.2f} s"
        assert len({still, turned, picture()}) == 3
        # it fits a phone: nothing to scroll sideways
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        chromium.close()
    assert not said
    assert len(asked) == 1


def test_many_lines_have_colours(pyplot):
    """Up to five lines are black; of more lines each has its own colour or dashes, and all names are in the figure."""
    t = np.linspace(0.0, 1.0, 3)
    for count in (2, 5, 6, 30, 49):
        ax = canvas.curves(t, {f"line {k}": t + k for k in range(count)}, "y")
        colours = {line.get_color() for line in ax.lines}
        assert len(colours) == (1 if count <= 5 else 7 if count >= 7 else 6), count
        assert len({(line.get_color(), str(line._dash_pattern)) for line in ax.lines}) == count
        ax.figure.canvas.draw()
        if ax.get_legend() is not None:
            box = ax.get_legend().get_window_extent()
            assert box.x0 >= 0.0 and box.y1 <= ax.figure.bbox.y1 + 1.0 and box.x1 <= ax.figure.bbox.x1 + 1.0
            assert ax.get_window_extent().height > 150.0
        pyplot.close("all")


def test_motors_alone_where_there_are_many_coordinates(pyplot):
    delta = sarrus.mechanisms.delta()
    run = Trajectory(delta, [0.0], delta.assemble()[None], np.zeros((1, delta.nv)))
    assert [line.get_label() for line in run.plot().lines] == ["motor1", "motor2", "motor3"]
    assert sum(len(ax.lines) for ax in run.plot("q").figure.axes) == delta.nq
    assert [line.get_label() for line in fourbar_run(3).plot().lines] == ["motor", "pin1", "pivot"]


def test_efforts_and_joint_wrenches(pyplot):
    run = fourbar_run(11, efforts=np.ones((11, 1)) * [2.0, 0.0, 0.0])
    (line,) = run.plot("efforts").lines
    assert line.get_label() == "motor"
    assert_allclose(line.get_ydata(), 2.0, atol=1e-9)
    loads = run.joint_wrenches()
    for line in run.plot("joint_wrenches").lines:
        assert_array_equal(line.get_ydata(), np.linalg.norm(loads[line.get_label()][:, 3:], axis=1))
    ax = loads.polar(["pin1", "motor"])
    for name, line in zip(("pin1", "motor"), ax.lines):
        assert_allclose(line.get_ydata(), np.hypot(loads[name][:, 3], loads[name][:, 5]))
        assert_allclose(line.get_xdata(), np.arctan2(loads[name][:, 3], loads[name][:, 5]))  # from z to x, about y
    with pytest.raises(sarrus.NameNotFoundError, match="no joint is named 'pin3'"):
        loads.polar("pin3")
    with pytest.raises(ValueError, match="polar axes"):
        loads.polar("pin1", pyplot.figure().subplots())


def test_phase_portrait(pyplot):
    run = fourbar_run(11)
    ax = run.plot_phase()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("motor [rad]", "rate of motor [rad/s]")
    assert_array_equal(ax.lines[0].get_xdata(), run.q[:, 0])
    assert_array_equal(ax.lines[0].get_ydata(), run.v[:, 0])
    (closing, _) = run.plot_phase("pin2").lines
    assert_array_equal(closing.get_xdata(), run.joint("pin2")[:, 0])
    slider = sarrus.mechanisms.slider_crank()
    two = Trajectory(slider, [0.0], slider.assemble()[None], np.zeros((1, slider.nv)))
    with pytest.raises(ValueError, match="several units, rad, m"):
        two.plot_phase(slider.joints)
    delta = sarrus.mechanisms.delta()
    with pytest.raises(sarrus.ModelError, match="no coordinate whose rate is its velocity"):
        Trajectory(delta, [0.0], delta.assemble()[None], np.zeros((1, delta.nv))).plot_phase("float")


def test_films_with_traces_and_forces(pyplot, tmp_path):
    run = fourbar_run(21)
    run.animate(tmp_path / "run.html", frames_per_second=20, trace="coupler", forces=["pin2"])
    data, numbers = embedded((tmp_path / "run.html").read_text(encoding="utf-8"))
    assert data["count"][3:] == [1, 1] and data["names"] == ["pin2"] and len(set(data["inks"])) == 3
    # the trace is where the joint to the coupler's frame is, the arrow as long as the force
    bars = numbers["bars"].reshape(21, 3, 2, 3)
    traced = np.frombuffer(base64.b64decode(data["traces"]), "<i2").reshape(21, 3)
    assert np.abs(traced - bars[:, 1, 0]).max() <= 1
    arrows = np.frombuffer(base64.b64decode(data["arrows"]), "<i2").reshape(21, 2, 3).astype(float)
    shown = arrows[:, 1] - arrows[:, 0]
    force = np.einsum("nij,nj->ni", run.frame("rocker")[:, :3, :3], run.joint_wrenches()["pin2"][:, 3:])
    largest = np.linalg.norm(force, axis=1).max()
    assert_allclose(data["force"] * np.linalg.norm(shown, axis=1), np.linalg.norm(force, axis=1), atol=1e-3 * largest)
    assert_allclose(shown / np.linalg.norm(shown, axis=1).max(), force / largest, atol=1e-3)
    run.animate(tmp_path / "run.gif", frames_per_second=5, trace=["coupler", "rocker"], forces="pin2")
    film = run.animate(tmp_path / "run.html", frames_per_second=20, labels=True)
    data = embedded((tmp_path / "run.html").read_text(encoding="utf-8"))[0]
    assert sorted(data["labels"]) == [["coupler", 1], ["crank", 0], ["rocker", 2]]
    film._draw_frame(20)
    beside = {text.get_text(): text.xy for text in film._fig.axes[0].texts if hasattr(text, "xy")}
    middle = sarrus.Skeleton(run.mechanism).segments_flat(run.q[-1])[:, :, [0, 2]].mean(axis=1)
    assert_allclose([beside["crank"], beside["coupler"], beside["rocker"]], middle, atol=1e-9)
    for bad, kind in (({"trace": "elbow"}, "frame"), ({"forces": "elbow"}, "joint or load")):
        with pytest.raises(sarrus.NameNotFoundError, match=f"no {kind} is named 'elbow'"):
            run.animate(**bad)


def test_films_show_the_loads_of_a_motion(pyplot, tmp_path):
    run = fourbar_run(21)
    load = np.column_stack([np.zeros((21, 3)), np.linspace(1.0, 5.0, 21), np.zeros(21), np.full(21, 2.0)])
    run = Trajectory(run.mechanism, run.t, run.q, run.v, wrenches={"coupler": load})  # what else acts is unknown
    run.animate(tmp_path / "run.html", frames_per_second=20, forces="coupler")
    data = embedded((tmp_path / "run.html").read_text(encoding="utf-8"))[0]
    arrows = np.frombuffer(base64.b64decode(data["arrows"]), "<i2").reshape(21, 2, 3).astype(float)
    force = np.einsum("nij,nj->ni", run.frame("coupler")[:, :3, :3], load[:, 3:])
    assert_allclose(data["force"] * (arrows[:, 1] - arrows[:, 0]), force, atol=2e-3 * np.abs(force).max())
    ax = run.mechanism.plot(run.q, wrenches=run.wrenches)
    at = {text.get_text(): np.array(text.xy) for text in ax.texts if hasattr(text, "xy")}
    arrow = at[f"coupler {np.linalg.norm(force[-1]):.3g} N"] - run.frame("coupler")[-1, [0, 2], 3]
    assert_allclose(arrow / np.linalg.norm(arrow), (force[-1] / np.linalg.norm(force[-1]))[[0, 2]], atol=1e-9)


def standing(duration=0.1):
    """Return a hand on a slide, on a plane, beside a ball on the ground."""
    b = sarrus.Builder("standing")
    b.add_body("slide", sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("z", sarrus.Prismatic("z"), "ground", "slide")
    b.add_body("hand", sarrus.Inertia.sphere(2.0, 0.1))
    b.add_joint("wrist", sarrus.Revolute("y"), "slide", "hand")
    b.add_body("ball", sarrus.Inertia.sphere(0.5, 0.1))
    b.add_joint("float", sarrus.Free(), "ground", "ball", at_parent=(2.0, 0, 0))
    b.add_shape("ball", sarrus.shapes.Sphere(0.1), name="ball")
    b.add_shape("ground", sarrus.shapes.Plane(), name="floor")
    b.set_home({"z": 0.1, "float": (0, 0, 0, 1, 0, 0, 0.1)})
    robot = b.build()
    foot = sarrus.control.RigidContact("hand", radius=0.1)
    return sarrus.simulate(robot, robot.assemble(), np.zeros(robot.nv), duration, foot)


CARRIED = {"hand-ground": 3.0 * 9.81, "ball-floor": 0.5 * 9.81}


def test_tables_and_plots_show_rigid_contact(pyplot):
    run = standing()
    if importlib.util.find_spec("pandas"):
        table = run.to_dataframe()
        for name, carried in CARRIED.items():
            heads = [f"contact:{name}:{axis} [N]" for axis in "xyz"]
            assert_allclose(table[heads].to_numpy()[1:], [[0.0, 0.0, carried]] * (len(run) - 1), atol=1e-6)
    ax = run.plot("contacts")
    assert ax.get_ylabel() == "force of contact [N]"
    assert {line.get_label(): line.get_ydata()[-1] for line in ax.lines} == pytest.approx(CARRIED)
    with pytest.raises(sarrus.ModelError, match="has no rigid contact"):
        fourbar_run().plot("contacts")


def test_films_show_rigid_contact(pyplot, tmp_path):
    run = standing()
    run.animate(tmp_path / "run.html", frames_per_second=20, forces=["wrist", "contacts"])
    data = embedded((tmp_path / "run.html").read_text(encoding="utf-8"))[0]
    arrows = np.frombuffer(base64.b64decode(data["arrows"]), "<i2").reshape(-1, 3, 2, 3).astype(float)
    pushes = data["force"] * (arrows[-1, :, 1] - arrows[-1, :, 0])
    assert data["names"] == [*CARRIED, "wrist"]
    assert_allclose(pushes, [[0, 0, 29.43], [0, 0, 4.905], [0, 0, -9.81]], atol=0.1)
