"""The view moves a mechanism with its loops closed, plays runs, and shows pictures."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import socket
import sys
import threading
import time
from itertools import count
from types import SimpleNamespace
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np
import pytest

import sarrus
from sarrus.io import mesh_files
from sarrus.shapes import Box, Cylinder, Mesh, Sphere
from sarrus.viewer import shapes, viewer
from sarrus.viewer.viewer import Inputs, View, view
from tests.gallery import every, every_steady

# points are sums of a few products of numbers of order 1 m
ROUNDING = 1e-13
# the search closes loops to 1e-13 of the mechanism's size; a sqrt of it is what a residual's double root could hide
CLOSED = 1e-9


def residual(mechanism, q):
    return np.abs(mechanism.constraint_residual(q)).max(initial=0.0)


# ---- moving by hand --------------------------------------------------------------------------------------------------


@every_steady
def test_inputs_are_as_many_as_degrees_of_freedom_motors_first_and_keep_loops_closed(mechanism):
    q = mechanism.assemble()
    inputs = Inputs(mechanism, q)
    rows = inputs.loops.holonomic
    J = inputs.loops.jacobian(q)[rows]
    assert len(inputs.chosen) == mechanism.nv - (np.linalg.matrix_rank(J, tol=1e-9) if rows.any() else 0)
    driven = [inputs.joints[k] in mechanism.actuated for k in inputs.chosen]
    assert driven == sorted(driven, reverse=True)
    start = inputs.coordinates(q)
    for k in inputs.chosen:
        goal = start[k] + 0.02 * inputs.loops.column_scale[k]
        moved, arrived = inputs.move_to(q, {k: goal})
        assert arrived and residual(mechanism, moved) < CLOSED
        now = inputs.coordinates(moved)
        assert now[k] == pytest.approx(goal, abs=1e-11)
        others = [j for j in inputs.chosen if j != k]
        assert np.abs(now[others] - start[others]).max(initial=0.0) < 1e-11


def test_what_cannot_close_is_led_as_far_as_it_goes():
    """The rocker of a crank-rocker moves between the positions with crank and coupler in line."""
    fourbar = sarrus.mechanisms.four_bar(0.4, 1.1, 0.9, 1.0)
    q = fourbar.assemble(fixed={"motor": 0.5})
    inputs = Inputs(fourbar, q)
    k = inputs.names.index("pivot")
    inputs.chosen = [k]
    ends = []
    for goal in (-3.0, 3.0):
        last, arrived = inputs.move_to(q, {k: goal})
        assert not arrived and residual(fourbar, last) < CLOSED
        ends.append(inputs.coordinates(last)[k])
    # cosine rule in the triangles of ground 1.0, rocker 0.9 and coupler -+ crank, 0.7 and 1.5
    corners = [np.arccos((1.0 + 0.81 - s**2) / 1.8) for s in (0.7, 1.5)]
    assert abs(ends[1] - ends[0]) == pytest.approx(corners[1] - corners[0], abs=2e-2)
    assert abs(ends[1] - ends[0]) < corners[1] - corners[0]


# ---- the view --------------------------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture
def fourbar():
    return sarrus.mechanisms.four_bar(0.4, 1.1, 0.9, 1.0)


@pytest.fixture
def shown(fourbar):
    pytest.importorskip("viser")
    with View(fourbar, port=free_port()) as opened:
        yield opened


def swing(fourbar):
    """Return a run of two seconds, with velocities by differences."""
    from sarrus.simulation.trajectory import Trajectory

    t = np.linspace(0.0, 2.0, 81)
    q = fourbar.follow({"motor": 0.5 + 2.0 * t})
    v = fourbar.project_velocity(q, np.gradient(q, t, axis=0))
    return Trajectory(fourbar, t, q, v)


def test_configurations_are_listed_and_the_keyframe_home_is_where_it_begins(fourbar):
    pytest.importorskip("viser")
    b = fourbar.to_builder()
    home = b._home
    b.set_configuration("home", home)
    b.set_configuration("raised", dict(zip(fourbar.joints, fourbar.assemble(fixed={"motor": 1.5}), strict=True)))
    robot = b.build()
    with View(robot, port=free_port()) as shown:
        box = shown._panel.configurations
        assert (box.options, box.value) == (("home", "raised"), "home")
        assert np.array_equal(shown.q, robot.assemble())
        box.value = "raised"
        assert np.abs(shown.q - robot.configuration("raised")).max() < CLOSED
        box.value = "home"
        assert np.array_equal(shown.q, robot.assemble())
    with View(fourbar, port=free_port()) as shown:
        assert not hasattr(shown._panel, "configurations")


def test_without_viser_the_error_says_what_to_install(fourbar, monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'viser<1\.2'"):
        view(fourbar, open_browser=False, block=False)


def test_a_page_is_served_until_it_is_closed(fourbar, capsys):
    pytest.importorskip("viser")
    port = free_port()
    shown = view(fourbar, port=port, open_browser=False, block=False)
    assert shown.url.startswith(f"http://127.0.0.1:{port}/")
    assert shown.url in repr(shown) and shown.url in shown._repr_html_()
    with urlopen(shown.url, timeout=10) as page:
        assert page.status == 200 and b"<html" in page.read()
    shown.close()
    shown.close()
    with pytest.raises(OSError, match="refused"):
        urlopen(shown.url, timeout=2)
    assert "closed" in repr(shown)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("where", "error", "match"),
    [
        ({"port": 70000}, ValueError, r"port must be from 0 to 65535; got 70000"),
        ({"port": -1}, ValueError, r"port must be from 0 to 65535; got -1"),
        ({"port": "x"}, TypeError, "port must be an integer; got 'x'"),
        ({"port": True}, TypeError, "port must be an integer; got True"),
        ({"port": 8080.0}, TypeError, "port must be an integer; got 8080.0"),
        ({"host": ""}, ValueError, "host is empty; pass '127.0.0.1'"),
        ({"host": None}, TypeError, "host must be an address or a name, .* got None"),
        ({"host": "nowhere"}, ValueError, "host 'nowhere' cannot be resolved .*unheard of"),
        ({"host": "x" * 300}, ValueError, "cannot be resolved .*label"),
        # an address for documents, RFC 5737: nobody's
        ({"host": "192.0.2.1"}, ValueError, "host '192.0.2.1' is not an address of this machine"),
    ],
)
def test_where_nothing_can_be_served_is_said_before_the_server_starts(fourbar, monkeypatch, where, error, match):
    viser = pytest.importorskip("viser")
    monkeypatch.setattr(viser, "ViserServer", None)
    if where.get("host") == "nowhere":  # whatever this machine's resolver answers

        def unknown(*_, **__):
            raise socket.gaierror(-2, "unheard of")

        monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(error, match=match):
        View(fourbar, **{"port": 0, **where})


def test_the_next_free_port_is_taken_and_the_last_one_has_none(fourbar):
    pytest.importorskip("viser")
    with View(fourbar, port=0) as one, View(fourbar, port=one._server.get_port()) as other:
        assert urlsplit(other.url).port > urlsplit(one.url).port
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # taken already is as good
            held.enter_context(socket.create_server(("127.0.0.1", 65535)))
        with pytest.raises(ValueError, match="no port from 65535 to 65535 is free"):
            View(fourbar, port=65535)


def test_a_server_that_never_comes_up_is_an_error(fourbar, monkeypatch):
    pytest.importorskip("viser")
    never = threading.Event()
    monkeypatch.setattr("sarrus.viewer._gate.guarded", lambda *_: never.wait())
    monkeypatch.setattr(viewer, "PATIENCE", 0.05)
    with pytest.raises(RuntimeError, match="did not start"):
        View(fourbar, port=0)
    never.set()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_host_that_others_reach_is_said_aloud(fourbar, host):
    pytest.importorskip("viser")
    try:
        socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        pytest.skip(f"no such network here: {error}")
    with pytest.warns(UserWarning, match=f"host '{host}': everyone who can reach port"):
        shown = View(fourbar, port=0, host=host)
    with shown:
        assert shown.url.startswith("http://[::1]:" if ":" in host else "http://127.0.0.1:")


def until(condition):
    """Wait for another thread; the deadline only limits a failure."""
    deadline = time.monotonic() + 300.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_sliders_move_it_and_loops_stay_closed(fourbar, shown):
    assert shown.inputs == ("motor",)
    for angle in (0.7, 2.0, -2.5, 3.1):
        shown.sliders["motor"].value = angle
        assert shown.q[0] == pytest.approx(angle, abs=1e-11) and residual(fourbar, shown.q) < CLOSED
        pose = fourbar.pose(shown.q, "rocker")
        node = shown._scene.nodes["rocker"]
        w, x, y, z = node.wxyz
        assert np.abs(sarrus.Rotation.from_quaternion([x, y, z, w]).matrix - pose[:3, :3]).max() < 1e-12
        assert np.abs(node.position - pose[:3, 3]).max() < 1e-12
    shown.home()
    assert np.array_equal(shown.q, fourbar.assemble()) and shown.sliders["motor"].value == pytest.approx(
        shown.q[0], abs=1e-6
    )


def test_where_loops_would_open_it_goes_back_and_says_so(shown):
    before = shown.q
    assert not shown.move({"pivot": 3.0})
    assert np.array_equal(shown.q, before) and "pivot ends at" in shown._panel.status.content
    assert shown.move({"motor": float(before[0]) + 0.1})
    assert shown._panel.status.content == ""


def test_wrong_names_and_configurations_are_refused(shown):
    with pytest.raises(sarrus.NameNotFoundError, match="motr"):
        shown.move({"motr": 0.0})
    with pytest.raises(sarrus.StateError, match="finite"):
        shown.set([np.nan, 0.0, 0.0])
    with pytest.raises(sarrus.ShapeError, match=r"\(3,\)"):
        shown.set([0.0])
    with pytest.raises(sarrus.ShapeError, match="q must be an array of real numbers"):
        shown.set("q")
    with pytest.raises(TypeError, match=r"coordinates must be a mapping .*; got 3"):
        shown.move(3)
    for value, error in ((np.nan, ValueError), ("fast", TypeError)):
        with pytest.raises(error, match="coordinate 'motor' must be"):
            shown.move({"motor": value})
    with pytest.raises(sarrus.ModelError, match="no trajectory"):
        shown.play()


def test_views_of_what_is_none(fourbar):
    with pytest.raises(TypeError, match="mechanism must be a Mechanism"):
        sarrus.results.View(np.zeros(3))
    with pytest.raises(TypeError, match="trajectory must be a Trajectory, a list of them or a Sweep; got 3"):
        sarrus.results.View(fourbar, trajectory=3)


def test_a_run_is_played_from_its_start_to_its_end(fourbar, monkeypatch):
    pytest.importorskip("viser")
    ticks = count()  # 0.04 s between two looks at the clock, whatever the machine does
    monkeypatch.setattr(viewer, "clock", SimpleNamespace(perf_counter=lambda: 0.04 * next(ticks)))
    run = swing(fourbar)
    with View(fourbar, trajectory=run, port=free_port()) as shown:
        assert np.array_equal(shown.q, run.q[0])
        shown.seek(1.0)
        assert np.abs(shown.q - run.at(1.0)[0]).max() < ROUNDING and shown._panel.clock.value == 1.0
        shown._panel.clock.value = 0.5  # as one drags it
        assert shown.time == 0.5 and np.abs(shown.q - run.at(0.5)[0]).max() < ROUNDING
        shown._panel.repeat.value = False
        shown._panel.speed.value = "5"
        seen, seek = [], shown.seek
        monkeypatch.setattr(shown, "seek", lambda t: (seen.append(t), seek(t)))
        shown.play()
        until(lambda: not shown._playing.is_set())
        assert seen[:-1] == pytest.approx(np.arange(0.7, 2.0, 0.2)) and seen[-1] >= 2.0
        assert shown.time == 2.0 and np.array_equal(shown.q, run.q[-1])
        shown.play()
        shown.sliders["motor"].value = 1.0  # a hand on it
        assert not shown._playing.is_set()
        assert shown.q[0] == pytest.approx(1.0, abs=1e-11) and residual(fourbar, shown.q) < CLOSED


def test_a_run_of_another_mechanism_is_refused(fourbar):
    pytest.importorskip("viser")
    with pytest.raises(sarrus.ModelError, match="four"):
        View(sarrus.mechanisms.pendulum(), trajectory=swing(fourbar), port=free_port())


def test_sliders_end_where_the_loops_do():
    """A rocker with limited range: four-bar 0.9 (input), 1.1, 0.4, 1.0, by the cosine rule in its two dead positions."""
    rocker = sarrus.mechanisms.four_bar(0.9, 1.1, 0.4, 1.0)
    q = rocker.assemble(fixed={"motor": 1.0}, branch="any")
    inputs = Inputs(rocker, q)
    (k,) = inputs.chosen
    low, high = inputs.reach(q, k, (-np.pi, np.pi))
    # coupler and output in line, stretched: 1.5, or folded: 0.7, across from the ground pin
    ends = [np.arccos((0.81 + 1.0 - s**2) / 1.8) for s in (0.7, 1.5)]
    assert sorted((abs(low), abs(high))) == pytest.approx(ends, abs=5e-3)
    assert max(residual(rocker, inputs.move_to(q, {k: end})[0]) for end in (low, high)) < CLOSED
    pytest.importorskip("viser")
    with View(rocker, q, port=0) as shown:
        slider = shown.sliders["motor"]
        assert (slider.min, slider.max) == pytest.approx((low, high), abs=1.1e-3)
    with View(sarrus.mechanisms.four_bar(), port=0) as shown:  # its crank turns fully
        assert (shown.sliders["motor"].min, shown.sliders["motor"].max) == pytest.approx((-np.pi, np.pi), abs=1e-3)


def test_platforms_are_plates_and_solids_that_look_outward():
    from sarrus.viewer.shapes import plate

    rng = np.random.default_rng(3)
    for points, volume, flat in (
        (np.array([(0, 0, 0), (2, 0, 0), (2, 1, 0), (0, 1, 0)]), 2 * 0.1, True),
        (np.array([(0, 0, 0), (2, 0, 0), (0, 1, 0), (0, 0, 3)]), 1.0, False),
        (np.array([(x, y, z) for x in (0, 1) for y in (0, 2) for z in (0, 3)]), 6.0, False),
    ):
        turn = sarrus.Rotation.exp(rng.normal(size=3)).matrix
        (vertices, faces), is_flat = plate(points @ turn.T + [1, 2, 3], 0.1)
        corners = vertices - vertices.mean(axis=0)
        a, b, c = corners[faces].transpose(1, 0, 2)
        # a square's four triangles of corners lie twofold over one another
        twice = 1.0 if len(points) == 4 and not flat else 2.0
        assert is_flat == flat and np.einsum("ij,ij", a, np.cross(b, c)) / 6 >= volume * 0.999
        assert np.einsum("ij,ij", a, np.cross(b, c)) / 6 <= volume * twice * 1.001
    skeleton = sarrus.Skeleton(sarrus.mechanisms.stewart())
    assert set(skeleton.plates) == {"platform"} and len(skeleton.plates["platform"]) == 6
    assert not sarrus.Skeleton(sarrus.mechanisms.four_bar()).plates


def test_arrows_are_the_joints_forces_at_rest_and_of_a_run(fourbar, shown):
    """At rest the ground pins carry the weight; the scale is the stated one."""
    shown._panel.forces.value = True
    forces = shown._scene.forces
    arrows = np.asarray(forces._node.points) * 1.0
    on = dict(zip(fourbar.joint_wrenches(shown.q, np.zeros(3), np.zeros(3)), arrows, strict=True))
    carried = sum((on[name][1] - on[name][0]) * forces.scale for name in ("motor", "pivot"))
    assert carried == pytest.approx([0.0, 0.0, 9.81 * fourbar.mass], abs=1e-4)  # in single precision
    assert np.linalg.norm(arrows[:, 1] - arrows[:, 0], axis=1).max() <= 0.281 * shown._scene.skeleton.size
    assert f"0.1 m is {0.1 * forces.scale:.3g} N" in shown._panel.note.content
    shown._panel.forces.value = False
    assert not forces._node.visible and not shown._panel.note.visible
    with View(fourbar, trajectory=swing(fourbar), port=0) as played:  # of which nobody said what acts
        played._panel.forces.value = True
        assert "No forces: the applied forces of this Trajectory are unknown" in played._panel.note.content


def test_arrows_of_a_run_show_rigid_contact():
    pytest.importorskip("viser")
    b = sarrus.Builder("ball")
    b.add_body("ball", sarrus.Inertia.sphere(0.5, 0.1))
    b.add_joint("float", sarrus.Free(), "ground", "ball")
    robot = b.build()
    foot = sarrus.control.RigidContact("ball", radius=0.1)
    run = sarrus.simulate(robot, [0, 0, 0, 1, 0, 0, 0.1], np.zeros(6), 0.1, foot)
    with View(robot, trajectory=run, port=free_port()) as played:
        played._panel.forces.value = True
        played.seek(0.1)
        forces = played._scene.forces
        tail, tip = np.asarray(forces._node.points)[-1]
        assert tail == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)  # where it touches
        assert (tip - tail) * forces.scale == pytest.approx([0.0, 0.0, 0.5 * 9.81], abs=1e-4)
        assert "and of contacts" in played._panel.note.content


def test_traces_follow_frames_of_a_run_and_of_sliders(fourbar):
    pytest.importorskip("viser")
    run = swing(fourbar)
    with View(fourbar, trajectory=run, trace="coupler", port=0) as shown:
        path = np.asarray(shown._scene.traces._lines["coupler"].points)
        assert path.shape == (80, 2, 3) and np.abs(path[:, 0] - run.frame("coupler")[:-1, :3, 3]).max() < 1e-6
    with View(fourbar, trace=["coupler", "rocker"], port=0) as shown:
        traces = shown._scene.traces
        for angle in (0.1, 0.2, 0.3):
            shown.move({"motor": shown._home[0] + angle})
        path = np.asarray(traces._lines["coupler"].points)
        assert path.shape == (3, 2, 3) and np.abs(path[-1, 1] - fourbar.pose(shown.q, "coupler")[:3, 3]).max() < 1e-6
        shown.home()
        assert not traces._lines["coupler"].visible
    with pytest.raises(sarrus.NameNotFoundError, match="couplr"):
        View(fourbar, trace="couplr", port=0)
    with pytest.raises(sarrus.NameNotFoundError):
        View(fourbar, trace=np.zeros((2, 3)), port=0)


def test_runs_of_other_lengths_are_not_drawn_with_these():
    pytest.importorskip("viser")
    heavy, long = sarrus.mechanisms.pendulum(mass=3.0), sarrus.mechanisms.pendulum(length=0.7)
    pendulum = sarrus.mechanisms.pendulum()
    with View(
        pendulum, trajectory=sarrus.simulate_many([pendulum, heavy], [0.1], [0.0], 0.1, every=50), port=0
    ) as shown:
        assert len(shown._scene.ghosts.runs) == 2
    with pytest.raises(
        sarrus.ModelError, match=r"mechanism of run 1 has different lengths .* view\(runs.mechanisms\[1\]"
    ):
        View(pendulum, trajectory=sarrus.simulate_many([pendulum, long], [0.1], [0.0], 0.1, every=50), port=0)


def test_many_runs_are_ghosts_in_time_with_the_chosen_one(fourbar):
    pytest.importorskip("viser")
    q = fourbar.assemble(fixed={"motor": 0.5})
    v = np.array([fourbar.complete_velocity(q, {"motor": w}) for w in np.linspace(1.0, 3.0, 40)])
    runs = sarrus.simulate_many(fourbar, q, v, 0.5, every=10)
    with View(fourbar, trajectory=runs, port=0) as shown:
        ghosts = shown._scene.ghosts
        assert len(ghosts.runs) == 24 and "24 of 40 runs" in shown._panel.note.content
        shown.seek(0.33)
        shown._panel.run.value = 39
        assert np.array_equal(shown.q, runs[39].at(0.33)[0]) and shown.time == 0.33
        crank = ghosts._nodes["crank"]
        for k, run in enumerate(ghosts.runs):
            pose = fourbar.pose(run.at(0.33)[0], "crank")
            w, x, y, z = crank.batched_wxyzs[k]
            assert np.abs(sarrus.Rotation.from_quaternion([x, y, z, w]).matrix - pose[:3, :3]).max() < 1e-6
            assert np.abs(crank.batched_positions[k] - pose[:3, 3]).max() < 1e-6
        with pytest.raises(IndexError, match="there are 40 runs"):
            shown.choose(40)
    long, short = runs[0], sarrus.Trajectory(fourbar, [0.0, 0.2], runs.q[1, :2], runs.v[1, :2])
    with View(fourbar, trajectory=[short, long], port=0) as shown:
        shown.seek(0.4)
        assert np.array_equal(shown.q, short.q[-1]) and shown._panel.clock.max == 0.5
    lost = runs[:3]
    lost.q[0] = np.nan
    with View(fourbar, trajectory=lost, port=0) as shown:  # the first run failed at once
        assert shown._panel.run.value == 1 and np.array_equal(shown.q, runs[1].q[0])
        shown.choose(0)
        assert "Run 0 has no sample" in shown._panel.status.content and np.array_equal(shown.q, runs[1].q[0])
    for none in ([], runs[:0]):
        with pytest.raises(ValueError, match="nothing to show"):
            View(fourbar, trajectory=none, port=0)


def test_bars_that_slide_have_ghosts_too():
    pytest.importorskip("viser")
    stewart = sarrus.mechanisms.stewart()
    q = stewart.assemble()
    still = sarrus.Trajectory(stewart, [0.0, 1.0], [q, q], np.zeros((2, stewart.nv)))
    with View(stewart, trajectory=[still, still], port=0) as shown:
        ghosts = shown._scene.ghosts
        ends = ghosts._skeleton.segments_flat(q)
        assert ghosts._slides
        for k, node in ghosts._slides:
            w, x, y, z = node.batched_wxyzs[1]
            way = sarrus.Rotation.from_quaternion([x, y, z, w]).matrix @ [0, 0, node.batched_scales[1][2]]
            assert np.abs(node.batched_positions[1] + way - ends[k, 1]).max() < 1e-6


def test_presets_look_from_where_their_names_say_and_all_is_in_the_picture():
    from sarrus.viewer.scene import PRESETS, Camera, _away

    up = np.eye(3)[2]
    assert _away("Front", up).tolist() == [0, -1, 0] and _away("Side", up).tolist() == [1, 0, 0]
    assert _away("Top", up) == pytest.approx(up, abs=2e-3)
    assert _away("Front", np.eye(3)[1]).tolist() == [0, 0, 1] and _away("Side", np.eye(3)[1]).tolist() == [1, 0, 0]
    points = np.random.default_rng(0).normal(size=(50, 3)) * [3.0, 1.0, 0.2] + [5.0, 0.0, 1.0]
    server = SimpleNamespace(
        initial_camera=SimpleNamespace(), on_client_connect=lambda _: None, on_client_disconnect=lambda _: None
    )
    camera = Camera(server, points, up)
    for preset in PRESETS:
        away = _away(preset, up)
        for aspect, covered in ((1.6, 0.0), (0.46, 0.3)):
            position, look_at = camera._placed(away, aspect, covered)
            right = np.cross(up, away) / np.linalg.norm(np.cross(up, away))
            x, y, z = np.stack([right, np.cross(away, right), -away]) @ (points - position).T
            tan = np.tan(np.radians(16.0))
            assert np.abs(x / z).max() < aspect * tan and (y / z).max() < tan
            # above what is covered from below
            assert (y / z).min() > (2 * covered - 1) * tan
            assert np.cross(look_at - position, away) == pytest.approx(np.zeros(3), abs=1e-9)


def test_a_notebook_shows_a_frame_and_is_not_held_up(fourbar, monkeypatch):
    pytest.importorskip("viser")
    monkeypatch.setattr(viewer.webbrowser, "open", lambda _: pytest.fail("a notebook has a frame"))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1)))
    with view(fourbar, port=0) as shown:
        assert shown._repr_html_().startswith(f'<iframe src="{shown.url}" width="100%"')


@every
def test_the_gallery_is_drawn(mechanism):
    pytest.importorskip("viser")
    with View(mechanism, port=free_port()) as shown:
        assert len(shown._scene.nodes) == len(mechanism.bodies) and shown.inputs


# ---- visuals ---------------------------------------------------------------------------------------------------------

# a quarter of a cube's corner: four points that no turn, mirror or unit of length maps onto one another
CORNERS = np.array([(0, 0, 0), (3, 0, 0), (0, 5, 0), (0, 0, 7)], dtype=float)
OBJ = "".join(f"v {x} {y} {z}\n" for x, y, z in CORNERS) + "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
SWING = 'type="continuous"><parent link="{}"/><child link="{}"/><origin xyz="0 0 1" rpy="0.3 0 0"/><axis xyz="0 1 0"/></joint>'
MASS = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'


def stl(corners=CORNERS):
    facets = ""
    for three in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)):
        points = "".join("vertex {} {} {}\n".format(*corners[k]) for k in three)
        facets += f"facet normal 0 0 0\nouter loop\n{points}endloop\nendfacet\n"
    return f"solid corner\n{facets}endsolid corner\n"


def arm(folder, *visuals):
    """Return a robot with two swinging links; the second has these visuals."""
    (folder / "arm.urdf").write_text(
        f'<robot name="arm"><link name="upper">{MASS}</link>'
        f'<link name="lower">{MASS}{"".join(f"<visual>{v}</visual>" for v in visuals)}</link><link name="base"/>'
        f'<joint name="shoulder" {SWING.format("base", "upper")}<joint name="elbow" {SWING.format("upper", "lower")}</robot>'
    )
    return sarrus.load(folder / "arm.urdf")


def mesh(file, scale="1 1 1"):
    return (
        f'<origin xyz="0.1 0.2 0.3" rpy="0.5 -0.4 1.1"/><geometry><mesh filename="{file}" scale="{scale}"/></geometry>'
    )


def turned(node, points):
    """Transform points in the frame of a node to its parent's."""
    w, x, y, z = node.wxyz
    return points @ sarrus.Rotation.from_quaternion([x, y, z, w]).matrix.T + node.position


def test_the_builder_takes_shapes_and_says_what_is_wrong():
    b = sarrus.Builder("brick")
    b.add_body("brick", sarrus.Inertia.box(2.0, (0.3, 0.2, 0.1)))
    b.add_visual("brick", Box((0.3, 0.2, 0.1)), (0, 0, 1), color=(1, 0, 0))
    b.add_visual("ground", Cylinder(2, 0.1), color="#00ff0080")
    one, two = b._visuals
    assert one.color == (1.0, 0.0, 0.0, 1.0) and one.placement == sarrus.Transform(translation=(0, 0, 1))
    assert two.color == (0.0, 1.0, 0.0, 128 / 255) and two.shape == Cylinder(2.0, 0.1)
    with pytest.raises(sarrus.NameNotFoundError, match=r"bric.*did you mean 'brick'"):
        b.add_visual("bric", Sphere(1.0))
    for shape, match in (
        ("box", "visual of body 'brick' needs a Box, Cylinder, Sphere or Mesh of sarrus.shapes; got 'box'"),
        (Box((1, 2)), r"size of a box needs three finite numbers \[m\]; got \(1, 2\)"),
        (Box((1, 2, -3)), r"size of a box must be positive; got \(1.0, 2.0, -3.0\)"),
        (Sphere(0), "radius of a sphere must be positive; got 0"),
        (Cylinder(1, np.inf), "length of a cylinder needs one finite number; got inf"),
        (Mesh(""), "a mesh needs the name of a file; got ''"),
        (Mesh("a.stl", (1, 1)), "scale of a mesh needs three finite numbers for x, y and z"),
        (Mesh("a.stl", (1, 0, 1)), "scale of a mesh must not be zero"),
    ):
        with pytest.raises(sarrus.ModelError, match=match):
            b.add_visual("brick", shape)
    for color in ("red", "#12345", (1, 0), (255, 0, 0), (0, 0, -0.1), 3):
        with pytest.raises(sarrus.ModelError, match="color needs three or four numbers from 0 to 1, or text"):
            b.add_visual("brick", Sphere(1.0), color=color)


def test_meshes_are_found_where_the_field_looks(tmp_path, monkeypatch):
    """Mesh files are found beside the model file, in packages above it, before these in given folders, and last in ROS' packages."""
    near, far, ros = (tmp_path / name for name in ("near/robot/urdf", "far", "ros"))
    for folder in (near, near.parent / "meshes", far / "robot" / "meshes", ros / "share" / "other"):
        folder.mkdir(parents=True)
    here, there, other = (
        near.parent / "meshes" / "a b.stl",
        far / "robot" / "meshes" / "a b.stl",
        ros / "share" / "other" / "c.stl",
    )
    for file in (here, there, other):
        file.write_text("")
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(ros))

    def found(name, *package_dirs):
        return shapes.find(Mesh(name, beside=str(near), package_dirs=package_dirs)).resolve()

    assert found("../meshes/a b.stl") == found(here.as_uri()) == found(str(here)) == here
    assert found("package://robot/meshes/a b.stl") == found("model://robot/meshes/a b.stl") == here
    assert (
        found("package://robot/meshes/a b.stl", str(far))
        == found("package://robot/meshes/a b.stl", str(far / "robot"))
        == there
    )
    assert found("package://other/c.stl") == other
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"{far}")
    assert found("package://robot/meshes/a b.stl") == here
    here.unlink()
    assert found("package://robot/meshes/a b.stl") == there
    for name, match in (
        ("b.stl", "b.stl: there is no such file in .*urdf"),
        (
            "package://robot/b.stl",
            "no folder 'robot' with this file above .*urdf: .*load.*package_dirs.*ROS_PACKAGE_PATH",
        ),
        ("https://robot.org/b.stl", "https:// is not supported"),
    ):
        with pytest.raises(shapes.MeshError, match=match):
            found(name)


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Return a robot in a package, another package beside it, and folders that neither may name; ROS' folders are elsewhere, with links."""
    for variable in mesh_files.ROS:
        monkeypatch.delenv(variable, raising=False)
    for name in ("pk/robots", "pk/meshes", "other/meshes", "plain", "ros/share/built"):
        (tmp_path / name).mkdir(parents=True)
    for name in (
        "pk/package.xml",
        "other/package.xml",
        "pk/meshes/a.stl",
        "other/meshes/a.stl",
        "plain/a.stl",
        "secret.stl",
    ):
        (tmp_path / name).write_text("")
    (tmp_path / "pk/robots/link.stl").symlink_to("../../secret.stl")
    (tmp_path / "pk/robots/inside.stl").symlink_to("../meshes/a.stl")
    (tmp_path / "ros/share/built/a.stl").symlink_to("../../../secret.stl")
    os.mkfifo(tmp_path / "pk/robots/pipe.stl")
    (tmp_path / "pk/robots/device.stl").symlink_to("/dev/zero")
    return tmp_path


LED_OUT = [
    "../../secret.stl", "{}/secret.stl", "file://{}/secret.stl", "link.stl", "device.stl", "../../plain/a.stl", "../../other/meshes/a.stl",
    "package://pk/../secret.stl", "package://pk/robots/link.stl", "package://pk/{}/secret.stl", "package://pk/robots/../../secret.stl",
    "package://../secret.stl", "package://./secret.stl", "package:////secret.stl", "model://pk/../../secret.stl", "package://plain/a.stl",
    "package://built/../../../secret.stl",
]  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and pipes are POSIX'")
@pytest.mark.parametrize("name", LED_OUT)
def test_meshes_stay_in_their_folders(packages, name):
    """Allowed are the folder of the model file, its package and other packages, by real path."""
    with pytest.raises(shapes.MeshError, match=r"outside of|there is no"):
        shapes.find(Mesh(name.format(packages), beside=str(packages / "pk/robots")))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and pipes are POSIX'")
def test_meshes_that_may_be_named(packages, monkeypatch):
    def found(name, *package_dirs, beside="pk/robots"):
        folder = beside and str(packages / beside)
        return shapes.find(
            Mesh(name, beside=folder, package_dirs=tuple(str(packages / x) for x in package_dirs))
        ).resolve()

    inside, other, secret = packages / "pk/meshes/a.stl", packages / "other/meshes/a.stl", packages / "secret.stl"
    for name in ("../meshes/a.stl", "inside.stl", str(inside), "package://pk/meshes/a.stl"):
        assert found(name) == inside
    assert found("package://other/meshes/a.stl") == other
    # what the user names himself
    assert found("../../secret.stl", ".") == found("link.stl", ".") == found(str(secret), beside="") == secret
    assert found("package://plain/a.stl", ".") == found("package://plain/a.stl", "plain") == packages / "plain/a.stl"
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(packages / "ros"))
    assert found("package://built/a.stl") == secret  # colcon build --symlink-install


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and pipes are POSIX'")
def test_meshes_are_regular_files(packages, monkeypatch):
    beside = str(packages / "pk/robots")
    with pytest.raises(shapes.MeshError, match=r"pipe\.stl: it is no regular file"):
        shapes.find(Mesh("pipe.stl", beside=beside))
    (packages / "pk/robots/large.stl").write_bytes(bytes(1001))
    monkeypatch.setattr(mesh_files, "LARGEST", 1000)
    with pytest.raises(shapes.MeshError, match="file of 1001 bytes; expected at most 1000"):
        shapes.find(Mesh("large.stl", beside=beside))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and pipes are POSIX'")
@pytest.mark.parametrize("material", ["../secret.mtl", "pipe.mtl", "link.mtl"])
def test_what_a_mesh_names_stays_in_its_folder(tmp_path, material):
    pytest.importorskip("trimesh")
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "secret.mtl").write_text("newmtl m\nKd 1 0 0\n")
    os.mkfifo(folder / "pipe.mtl")
    (folder / "link.mtl").symlink_to("../secret.mtl")
    (folder / "a.obj").write_text(f"mtllib {material}\nusemtl m\n{OBJ}")
    assert shapes.read(folder / "a.obj").colored is None


@pytest.mark.parametrize("suffix", ["stl", "obj"])
def test_a_mesh_is_where_the_body_is(tmp_path, suffix):
    """p = pose(q) placement (scale p_file), also mirrored and in millimetres, and after sliders have moved."""
    pytest.importorskip("viser")
    (tmp_path / "corner.stl").write_text(stl())
    (tmp_path / "corner.obj").write_text(OBJ)
    robot = arm(tmp_path, mesh(f"corner.{suffix}", "0.001 -0.1 2"))
    placement = sarrus.Transform.from_rpy(0.5, -0.4, 1.1, (0.1, 0.2, 0.3)).matrix
    with View(robot, port=free_port()) as shown:
        ((_, node),) = shown._scene.visuals
        for q in ([0.0, 0.0], [0.7, -1.9]):
            shown.set(q)
            seen = turned(shown._scene.nodes["lower"], turned(node, node.vertices * node.scale))
            matrix = robot.pose(np.array(q), "lower") @ placement
            wanted = CORNERS * (0.001, -0.1, 2) @ matrix[:3, :3].T + matrix[:3, 3]
            # which corner is which is the reader's choice; viser keeps vertices in single precision
            away = np.linalg.norm(seen[:, None] - wanted, axis=-1)
            assert away.min(axis=0).max() < 1e-5 and away.min(axis=1).max() < 1e-5


def test_shapes_have_their_sizes_and_look_outward():
    from sarrus.viewer.shapes import solid

    for shape, size, volume in (
        (Box((1.0, 2.0, 3.0)), (1, 2, 3), 6.0),
        (Cylinder(0.5, 4.0), (1, 1, 4), np.pi),
        (Sphere(2.0), (4, 4, 4), 4 / 3 * np.pi * 8),
    ):
        vertices, faces = solid(shape)
        # circles have 48 corners, some of them on the axes; 1 - cos(pi / 48) is 0.002
        assert (
            np.abs(np.ptp(vertices, axis=0) - size).max() < 0.01
            and np.abs(vertices.min(0) + vertices.max(0)).max() < 0.01
        )
        a, b, c = vertices[faces].transpose(1, 0, 2)
        # positive only where triangles run counterclockwise as seen from outside
        assert np.einsum("ij,ij", a, np.cross(b, c)) / 6 == pytest.approx(volume, rel=0.02)


def test_visuals_stand_for_bars_and_a_switch_brings_those_back(tmp_path):
    pytest.importorskip("viser")
    robot = arm(tmp_path, '<geometry><box size="0.1 0.1 0.1"/></geometry>')
    with View(robot, port=free_port()) as shown:
        ((look, node),) = shown._scene.visuals
        bare = shown._scene._bare
        assert look.visual.body == "lower" and node.visible and bare and not any(n.visible for n in bare)
        # of the lower link only: the others have none
        lower = f"/bodies/{robot.bodies.index('lower')}/"
        assert all(n.name.startswith(lower) for n in bare)
        shown._panel.visuals.value = False
        assert not node.visible and all(n.visible for n in bare)
        shown._panel.visuals.value = True
        assert node.visible and not any(n.visible for n in bare)


def test_what_is_welded_to_a_body_with_visuals_needs_no_bars():
    pytest.importorskip("viser")
    b = sarrus.Builder("tool")
    for name in ("arm", "flange", "tool", "camera"):
        b.add_body(name, sarrus.Inertia.sphere(1.0, 0.1))
    b.add_joint("pivot", sarrus.Revolute("y"), "ground", "arm")
    b.add_joint("weld", sarrus.Fixed(), "arm", "flange", at_parent=(1, 0, 0))
    b.add_joint("weld2", sarrus.Fixed(), "flange", "tool", at_parent=(1, 0, 0))
    b.add_joint("pan", sarrus.Revolute("z"), "tool", "camera", at_parent=(0, 1, 0))
    b.add_visual("arm", Sphere(0.2))
    b.add_visual("ground", Box((1, 1, 1)))
    with View(b.build(), port=free_port()) as shown:
        assert shown._scene._dressed == {"ground", "arm", "flange", "tool"}


@pytest.mark.parametrize(
    ("file", "text", "cause"),
    [
        ("gone.stl", None, "gone.stl and 1 more: there is no such file in"),
        ("package://gone/a.stl", None, "package://gone/a.stl and 1 more: there is no folder 'gone'"),
        ("arm.dae", "<COLLADA/>", "arm.dae: COLLADA files need pycollada: pip install pycollada"),
        ("arm.stl", "solid nothing\nendsolid nothing\n", r"arm.stl: (contains no faces|cannot be read \()"),
        ("arm.glb", "no such thing", r"arm.glb: cannot be read \(.*\); expected .stl, .obj, .dae or .glb"),
        ("arm.xyzzy", "no such thing", r"arm.xyzzy: cannot be read \(.*\); expected .stl, .obj, .dae or .glb"),
    ],
)
def test_a_mesh_that_cannot_be_read_is_one_warning_and_bars(tmp_path, monkeypatch, file, text, cause):
    pytest.importorskip("viser")
    monkeypatch.setattr(shapes, "find_spec", lambda name: None)  # as if there were no pycollada
    if text is not None:
        (tmp_path / file).write_text(text)
    robot = arm(tmp_path, mesh(file), mesh(file), *([mesh(f"{file[:-4]}b.stl")] if text is None else []))
    with pytest.warns(UserWarning, match=rf"^arm: not shown: {cause}") as caught:
        shown = View(robot, port=free_port())
    with shown:
        assert len(caught) == 1 and not shown._scene.visuals and not shown._scene._bare
        assert not hasattr(shown._panel, "visuals")


def test_a_file_is_read_once_and_keeps_its_colours(tmp_path, monkeypatch):
    """The model's colour has precedence over the file's."""
    pytest.importorskip("viser")
    (tmp_path / "red.mtl").write_text("newmtl red\nKd 1 0 0\n")
    (tmp_path / "red.obj").write_text("mtllib red.mtl\nusemtl red\n" + OBJ)
    read, real = [], shapes.read
    monkeypatch.setattr(shapes, "read", lambda path: (read.append(path), real(path))[1])
    blue = '<material name="blue"><color rgba="0 0 1 0.5"/></material>'
    with View(arm(tmp_path, mesh("red.obj"), mesh("red.obj") + blue), port=free_port()) as shown:
        assert len(read) == 1
        own, given = (node for _, node in shown._scene.visuals)
        assert own.glb_data.startswith(b"glTF") and b"baseColorFactor" in own.glb_data
        assert given.color == (0, 0, 255) and given.opacity == 0.5


# ---- what is on the screen -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    software = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with playwright.sync_playwright() as p:
        try:
            opened = p.chromium.launch(executable_path=found, args=software)
        except playwright.Error as error:
            pytest.skip(f"no Chromium to look at the page with: {str(error).splitlines()[0]}")
        yield opened
        opened.close()


def colored(picture):
    """Return a mask of the points that are not white, grey or black: the bars, also while they are faded in."""
    return np.ptp(picture.astype(int), axis=-1) > 30


def differing(one, other):
    """Return the number of points with bars in only one of two pictures."""
    return int((colored(one) ^ colored(other)).sum())


def test_the_picture_shows_the_mechanism_and_changes_with_a_slider(fourbar, shown, browser):
    image = pytest.importorskip("PIL.Image")
    page = browser.new_page(viewport={"width": 900, "height": 600})

    def picture():
        # without the panel on the right, and the notice on software rendering above
        shot = page.screenshot(clip={"x": 0, "y": 170, "width": 560, "height": 430})
        return np.asarray(image.open(io.BytesIO(shot)).convert("RGB"))

    def until(condition, what, seconds=60):
        deadline = time.monotonic() + seconds
        before = picture()
        while time.monotonic() < deadline:
            page.wait_for_timeout(300)
            now = picture()
            if np.array_equal(now, before) and condition(now):
                return now
            before = now
        raise AssertionError(f"not seen within {seconds} s: {what}")

    page.goto(shown.url)
    # the three bars cover some per cent of the picture, but not all of it
    first = until(lambda now: colored(now).sum() > 2000, "a mechanism in colours")
    assert colored(first).mean() < 0.5

    start = shown.q
    # by mouse: keys would also turn the camera
    thumb = page.locator("[role=slider]").first.bounding_box()
    x, y = thumb["x"] + thumb["width"] / 2, thumb["y"] + thumb["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 30, y, steps=10)
    page.mouse.up()
    second = until(lambda now: differing(now, first) > 2000, "it moved")
    assert colored(second).sum() > 2000
    assert shown.q[0] > start[0] + 0.1 and residual(fourbar, shown.q) < CLOSED

    page.get_by_role("button", name="Home").click()
    until(lambda now: differing(now, first) < 0.1 * differing(second, first), "home again")
    assert np.array_equal(shown.q, start)
    page.close()


def test_a_coloured_box_is_seen_where_it_is(browser):
    """The centre of its magenta points is at the box's centre in the page's camera, before and after a motion."""
    pytest.importorskip("viser")
    image = pytest.importorskip("PIL.Image")
    b = sarrus.Builder("flag")
    b.add_body("flag", sarrus.Inertia(1.0, com=(0, 0, 1), about_com=0.01 * np.eye(3)))
    b.add_joint("pole", sarrus.Revolute("y"), "ground", "flag")
    b.add_visual("flag", Cylinder(0.02, 1.0), (0, 0, 0.5), color="#888888")
    b.add_visual("flag", Box((0.1, 0.1, 0.1)), (0, 0, 1), color=(1, 0, 1))
    flag = b.build()
    page = browser.new_page(viewport={"width": 900, "height": 600})
    with View(flag, [0.3], port=free_port()) as shown:
        page.goto(shown.url)

        def seen():
            """Return (columns, rows) of the magenta points; empty if none are visible yet."""
            picture = np.asarray(image.open(io.BytesIO(page.screenshot())).convert("RGB")).astype(int)
            r, g, b = np.moveaxis(picture, -1, 0)
            return np.argwhere((r - g > 60) & (b - g > 60) & (abs(r - b) < 40))[:, ::-1]

        def expected(q):
            """Return (column, row) of the box's centre: a pinhole camera with z ahead and y down."""
            (client,) = shown._server.get_clients().values()
            camera, canvas = client.camera, page.locator("canvas").first.bounding_box()
            w, x, y, z = camera.wxyz
            R = sarrus.Rotation.from_quaternion([x, y, z, w]).matrix
            x, y, z = R.T @ (flag.pose([q], "flag")[:3, :3] @ [0, 0, 1] - camera.position)
            focal = canvas["height"] / 2 / np.tan(camera.fov / 2)
            middle = np.array([canvas["x"] + canvas["width"] / 2, canvas["y"] + canvas["height"] / 2])
            return middle + focal * np.array([x, y]) / z

        for q in (0.3, 0.5):
            shown.set([q])
            deadline = time.monotonic() + 60
            away = np.inf
            while away > 4.0 and time.monotonic() < deadline:
                page.wait_for_timeout(300)
                points = seen()
                # the silhouette of a box of about 30 points is nearer on one side: by less than a tenth of it
                away = np.linalg.norm(points.mean(axis=0) - expected(q)) if len(points) > 100 else np.inf
            assert away <= 4.0, (q, len(points), points.mean(axis=0), expected(q))
            assert np.ptp(points, axis=0).max() < 120
    page.close()
