"""View of a mechanism in the browser: sliders that keep its loops closed, and playback of runs.

Sliders change :class:`Inputs`, and a thread plays the trajectory. Both call `_show`, which updates the
:class:`~sarrus.viewer.scene.Scene` and the :class:`Panel`. A lock serialises handlers of sliders, the playback thread and calls
from the user's thread.
"""

from __future__ import annotations

import contextlib
import errno
import io
import ipaddress
import math
import operator
import re
import socket
import sys
import threading
import time as clock
import warnings
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Array, ArrayLike, check_mapping, checked_count, checked_number, real_array
from .._core import branch_outcome
from .._files import needed
from ..analysis.closing import closing
from ..analysis.independent_coordinates import showing
from ..analysis.linear_algebra import ScaledLoops
from ..control.path import Chart
from ..errors import AssemblyError, ModelError, ShapeError, StateError, printable, raise_no_such_name
from ..figures.canvas import round_length
from ..figures.skeleton import Skeleton
from ..mechanism import Mechanism, checked_mechanism
from ..simulation.sweep import Sweep
from ..simulation.trajectory import Trajectory
from .scene import PRESETS, Scene
from .shapes import picked

if TYPE_CHECKING:
    from typing import Self

FRAMES_PER_SECOND = 30
PATIENCE = 60.0  # timeout for starting the server [s], which usually takes 0.1 s


def view(
    mechanism: Mechanism,
    q: ArrayLike | None = None,
    *,
    trajectory: Trajectory | Sweep | Sequence[Trajectory] | None = None,
    trace: str | Sequence[str] = (),
    port: int = 8080,
    host: str = "127.0.0.1",
    open_browser: bool | None = None,
    block: bool | None = None,
) -> View:
    """Show a mechanism in the browser, with a slider for each independent coordinate; loops stay closed when a slider moves.

    Bodies are shown by their visuals (:meth:`Builder.add_visual`, or those of a model file). Bodies without visuals are shown as bars between two
    joints, or as plates between more joints. A mesh that cannot be read is omitted, with a warning that contains the cause.

    The range of a slider ends at the joint's limits, after one rotation, or where the loops block the motion. The last limit is computed for the
    first eight sliders only; further sliders stop when the loops block them. Checkboxes show names, dark colours, and joint forces as arrows: those
    of the run, or those of the mechanism at rest.

    Parameters
    ----------
    mechanism : the mechanism
    q : (nq,) configuration to show first [rad, m]; default: the first one of the trajectory, or the assembled home. A menu lists named
        configurations, such as a file's keyframes
    trajectory : a run to play back, or several: the result of :func:`~sarrus.simulate_many`, or a list. A slider selects one of several runs; up
        to 24 runs are shown translucently at the same time
    trace : names of frames whose paths are drawn: the path in the run, or the path of the motion by sliders
    port : port of the server, 0 to 65535. If it is in use, the next free port is used; 0 selects any free port
    host : address or name of this machine for the server. "127.0.0.1" shows the view to this machine only; other hosts, such as "0.0.0.0", raise
        a warning. Pages of other origins, and addresses without the key of the view's URL, are rejected
    open_browser : True to open a browser window. The default is False in a notebook, which embeds the view, and True otherwise
    block : True to wait until Ctrl-C, False to return immediately. The default is False in a notebook, and True otherwise

    Returns
    -------
    View : handle with ``.url``, ``.set(q)``, ``.move({"motor": 0.5})``, ``.play()`` and ``.close()``

    Raises
    ------
    ModuleNotFoundError
        viser is not installed: ``pip install 'viser<1.2'``.
    ValueError, RuntimeError
        No port from `port` on is free, the host is not an address of this machine, or the server does not start.

    Examples
    --------
    >>> import sarrus
    >>> sarrus.view(sarrus.mechanisms.four_bar(), block=False)  # doctest: +SKIP
    <view of 'four_bar' at http://127.0.0.1:8080/6ooRYQnjNQyrPbsMwbQdAw>
    """
    shown = View(mechanism, q, trajectory=trajectory, trace=trace, port=port, host=host)
    if not in_notebook() if open_browser is None else open_browser:
        webbrowser.open(shown.url)
    if not in_notebook() if block is None else block:
        print(f"{mechanism.name} at {shown.url}  (Ctrl-C ends it)", flush=True)
        shown.wait()
    return shown


class View:
    """Handle of a view. Any thread may use it. As a context manager, it closes the view on exit.

    Attributes
    ----------
    mechanism : the mechanism
    trajectory, runs : the run that is displayed, and all runs
    url : address for a browser
    sliders : coordinate to its slider, as in :attr:`Inputs.names`
    q, trace, port, host : as for :func:`sarrus.view`
    """

    def __init__(
        self,
        mechanism: Mechanism,
        q: ArrayLike | None = None,
        *,
        trajectory: Trajectory | Sweep | Sequence[Trajectory] | None = None,
        trace: str | Sequence[str] = (),
        port: int = 8080,
        host: str = "127.0.0.1",
    ) -> None:
        checked_mechanism(mechanism)
        runs = _checked_runs(mechanism, trajectory)
        needed("viser", "the view needs viser", "'viser<1.2'")
        self.mechanism, self.runs = mechanism, runs
        begun = np.isfinite(runs.q[:, 0]).all(axis=1) if isinstance(runs, Sweep) else [len(run) > 0 for run in runs]
        sound = np.flatnonzero(begun).tolist()
        if trajectory is not None and not sound:
            raise ValueError("nothing to show: no run has a sample")
        self.trajectory: Trajectory | None = runs[sound[0]] if sound else None
        shown = [runs[sound[k]] for k in picked(len(sound))]
        first = min((float(run.t[0]) for run in shown), default=0.0)
        self._span = first, max((float(run.t[-1]) for run in shown), default=0.0)
        if q is None:
            q = mechanism.assemble() if self.trajectory is None else self.trajectory.q[0]
        self._q = self._home = self._checked(q)
        self._time = first
        self._inputs = Inputs(mechanism, self._q, self._time)
        # protects the view's state, which callbacks of the browser, the playback thread and the user's thread change
        self._lock = threading.RLock()
        self._showing = self._closed = False
        self._playing, self._ended = threading.Event(), threading.Event()
        with contextlib.redirect_stdout(io.StringIO()):  # suppresses viser's banner, which would repeat the URL
            self._server, self.url = serve(host, port)
        self._player = threading.Thread(target=self._play, name="sarrus-view", daemon=True)
        try:
            with self._server.atomic():
                self._scene = Scene(self._server, mechanism, self._q, trace, shown)
                self._panel = Panel(self._server.gui, self._inputs, self._q, self._scene, self._span, len(runs))
                self.sliders = self._panel.sliders
                if len(runs) > 1:
                    self._panel.run.value = sound[0]
                self._listen()
                self._show()
        except BaseException:
            self.close()
            raise
        for fault in self._scene.faults:
            warnings.warn(f"{mechanism.name}: {printable(fault)}", stacklevel=2)
        if self.trajectory is not None:
            self._player.start()

    # ---- use ---------------------------------------------------------------------------------------------------------

    @property
    def q(self) -> Array:
        """Displayed configuration (nq,) [rad, m]."""
        with self._lock:
            return self._q.copy()

    @property
    def time(self) -> float:
        """Displayed time of the trajectory [s]."""
        return self._time

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the coordinates with sliders."""
        return tuple(self.sliders)

    def set(self, q: ArrayLike) -> None:
        """Show a configuration as it is, even if its loops are open. A playback is paused.

        Parameters
        ----------
        q : (nq,) configuration [rad, m]
        """
        checked = self._checked(q)
        self.pause()
        with self._lock:
            self._q = checked
            self._show()

    def move(self, coordinates: Mapping[str, float]) -> bool:
        """Move coordinates with closed loops; return False, and change nothing, if the loops do not allow the motion. A playback is paused.

        Parameters
        ----------
        coordinates : names of :attr:`Inputs.names`, joints or "joint: coordinate", to values [rad, m]
        """
        check_mapping("coordinates", coordinates, "names to values", 0)
        indices = {name: k for k, name in enumerate(self._inputs.names)}
        for name in coordinates:
            if name not in indices:
                raise_no_such_name("coordinate", name, indices)
        goal = {indices[name]: checked_number(f"coordinate '{name}'", x, "") for name, x in coordinates.items()}
        self.pause()
        with self._lock:
            self._inputs.loops.time = self._time
            q, arrived = self._inputs.move_to(self._q, goal)
            reached = self._inputs.coordinates(q)
            ends = ", ".join(f"{self._inputs.names[k]} ends at {reached[k]:.3f}" for k in goal)
            self._panel.set_status("" if arrived else f"The loops would open: {ends}.")
            self._q = q if arrived else self._q
            self._show()
        return arrived

    def home(self) -> None:
        """Return to the initial configuration and the initial camera."""
        self.pause()
        with self._lock:
            self._q, self._time = self._home, self._span[0]
            self._panel.set_status("")
            if self.trajectory is None:
                self._scene.traces.clear()
            self._show()
            self._scene.camera.home()

    def choose(self, run: int) -> None:
        """Display one of the runs, at the current time; raise IndexError if there is no such run.

        Parameters
        ----------
        run : index of the run
        """
        run = checked_count("run", run, 0)
        if run >= len(self.runs):
            raise IndexError(f"run {run!r} is out of range; there are {len(self.runs)} runs, from 0 on")
        chosen = self.runs[run]
        with self._lock:
            self._panel.set_status("" if len(chosen) else f"Run {run} has no sample.")
            if len(chosen):
                self.trajectory = chosen
                self._scene.traces.draw_run(chosen)
                self.seek(self._time)
            if len(self.runs) > 1 and self._panel.run.value != run:
                self._panel.run.value = run

    def seek(self, time: float) -> None:
        """Show all runs at a time; before its first and after its last time, a run is shown at its first or last sample.

        Parameters
        ----------
        time : time [s]
        """
        run, requested = self._run(), checked_number("time", time, "")
        with self._lock:
            self._time = float(np.clip(requested, *self._span))
            q = run.at(np.clip(self._time, run.t[0], run.t[-1]))[0]
            # the last samples of a diverged run may not be finite
            self._q = q if np.isfinite(q).all() else self._q
            self._show()

    def play(self) -> None:
        """Play the trajectory, from its start if it is at its end."""
        self._run()
        if self._time >= self._span[1]:
            self.seek(self._span[0])
        self._playing.set()
        self._panel.play.label = "Pause"

    def pause(self) -> None:
        """Stop playing."""
        self._playing.clear()
        if self.trajectory is not None:
            self._panel.play.label = "Play"

    def wait(self) -> None:
        """Wait until the view is closed, or for Ctrl-C, which closes it."""
        try:
            while not self._ended.wait(0.2):
                pass
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stop serving; a second call has no effect."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._ended.set()
        self._playing.set()
        if self._player.is_alive() and self._player is not threading.current_thread():
            self._player.join(timeout=5.0)
        with contextlib.redirect_stdout(io.StringIO()):
            self._server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<view of '{self.mechanism.name}' {'closed' if self._closed else f'at {self.url}'}>"

    def _repr_html_(self) -> str:
        if self._closed:
            return repr(self).replace("<", "&lt;")
        return f'<iframe src="{self.url}" width="100%" height="480" style="border: 0"></iframe>'

    # ---- events of the browser ---------------------------------------------------------------------------------------

    def _listen(self) -> None:
        panel = self._panel
        for name, slider in panel.sliders.items():
            slider.on_update(
                lambda _, name=name: self._by_user(lambda: self.move({name: float(panel.sliders[name].value)}))
            )
        panel.home.on_click(lambda _: self.home())
        if hasattr(panel, "configurations"):
            panel.configurations.on_update(lambda event: self._on_configuration(event.target.value))
        panel.views.on_click(lambda event: self._scene.camera.look(event.client, event.target.value))
        for kind, box in panel.boxes.items():
            box.on_update(lambda event, kind=kind: self._scene.reveal(kind, event.target.value))
        panel.forces.on_update(lambda _: self._by_user(self._show))
        panel.dark.on_update(lambda event: self._darken(event.target.value))
        if self._scene.visuals:
            panel.visuals.on_update(lambda event: self._scene.show_visuals(event.target.value))
        if self.trajectory is not None:
            panel.play.on_click(lambda _: self.pause() if self._playing.is_set() else self.play())
            panel.clock.on_update(lambda _: self._by_user(self._on_clock))
        if len(self.runs) > 1:
            panel.run.on_update(lambda _: self._by_user(lambda: self.choose(int(panel.run.value))))

    def _by_user(self, action: Callable[[], object]) -> None:
        """Do what a user requests by a control, unless the program itself has set the control.

        The action reads the control's value with the lock held: dragging sends many messages, and only the last value is needed.
        """
        with self._lock:
            if not self._showing and not self._closed:
                action()

    def _on_configuration(self, name: str) -> None:
        """Show a named configuration, with loops closed near it if possible."""
        with self._lock:
            q = self._home
            if name != "home":
                q = self.mechanism.configuration(name)
                with contextlib.suppress(AssemblyError):
                    q = self.mechanism.assemble(near=q, time=self._time)
            self.set(q)

    def _on_clock(self) -> None:
        self.pause()
        self.seek(float(self._panel.clock.value))

    def _darken(self, dark: bool) -> None:
        with self._server.atomic():
            self._scene.darken(dark)
            self._panel.theme(self._server.gui, dark)

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        """Move all bodies and sliders to the displayed configuration."""
        coordinates = self._inputs.coordinates(self._q)
        self._showing = True
        try:
            with self._server.atomic():
                self._scene.show(self._q)
                self._panel.show(coordinates, self._time)
                forces = self._scene.forces
                forces.shown = bool(self._panel.forces.value)
                text = forces.show(self._q, self.trajectory, self._time)
                if ghosts := self._scene.ghosts:
                    ghosts.show(self._time)
                    text += f"\n\nTranslucent: {len(ghosts.runs)} of {len(self.runs)} runs."
                if self.trajectory is None:
                    self._scene.traces.extend(self._q)
                self._panel.set_note(text)
        finally:
            self._showing = False

    def _play(self) -> None:
        """Show pictures at FRAMES_PER_SECOND while playing. This function runs in the playback thread."""
        first, last = self._span
        while not self._ended.is_set():
            self._playing.wait()
            before = clock.perf_counter()
            while self._playing.is_set() and not self._ended.wait(1.0 / FRAMES_PER_SECOND):
                now = clock.perf_counter()
                with self._lock:
                    if not self._playing.is_set():
                        break
                    t = self._time + (now - before) * float(self._panel.speed.value)
                    if t >= last and self._panel.repeat.value:
                        t = first
                    self.seek(t)
                    if t >= last:
                        self.pause()
                before = now

    def _run(self) -> Trajectory:
        if self.trajectory is None:
            raise ModelError("the view has no trajectory; pass view(mechanism, trajectory=...)")
        return self.trajectory

    def _checked(self, q: ArrayLike) -> Array:
        array = real_array("q", q)
        if array.shape != (self.mechanism.nq,):
            raise ShapeError(f"q has shape {array.shape}; a view shows one configuration, ({self.mechanism.nq},)")
        if not np.isfinite(array).all():
            raise StateError("q must be finite")
        return np.asarray(self.mechanism.normalize(array))


def _checked_runs(mechanism: Mechanism, trajectory: Any) -> Sweep | Sequence[Trajectory]:
    """Return the runs to play back."""
    if trajectory is None:
        return ()
    runs = trajectory if isinstance(trajectory, Sweep | Sequence) else (trajectory,)
    if not isinstance(runs, Sweep) and not all(isinstance(run, Trajectory) for run in runs):
        raise TypeError(f"trajectory must be a Trajectory, a list of them or a Sweep; got {trajectory!r}")
    if isinstance(runs, Sweep) and runs.mechanisms is not None:
        _check_alike(mechanism, runs)
        return runs
    for run in (runs,) if isinstance(runs, Sweep) else runs:
        if run.mechanism != mechanism:
            raise ModelError(f"the trajectory has the mechanism '{run.mechanism.name}'; expected '{mechanism.name}'")
    return runs


def _check_alike(mechanism: Mechanism, runs: Sweep) -> None:
    """Raise ModelError if the mechanism of a run has other dimensions than `mechanism`; masses may differ."""
    q = np.stack([mechanism.random(seed) for seed in (0, 1)])
    lines = Skeleton(mechanism).segments_flat(q)
    for robot in {id(robot): robot for robot in runs.mechanisms or ()}.values():
        drawn = Skeleton(robot).segments_flat(q) if robot.joints == mechanism.joints else lines[:0]
        if drawn.shape != lines.shape or not np.allclose(drawn, lines):
            k = next(k for k, other in enumerate(runs.mechanisms or ()) if other is robot)
            raise ModelError(
                f"the mechanism of run {k} has different lengths from '{mechanism.name}'; view the run alone: view(runs.mechanisms[{k}], trajectory=runs[{k}])"
            )


def in_notebook() -> bool:
    """Return True in the kernel of a notebook, which displays the result of a cell."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


# ---- independent coordinates that move a mechanism with its loops closed ---------------------------------------------
#
# Each independent coordinate is a row in addition to the loop constraints, like the inputs of :func:`~sarrus.Mechanism.follow`. All other coordinates
# move as little as possible. The motion ends at the end of the branch.

CLOSED = 1e-11  # largest relative residual of closed loops, and largest error of a coordinate
# longest step [rad, or relative to the mean size of the bodies], and shortest step as a fraction of the path
STEPS = 0.2, 1e-4


class Inputs:
    """Independent coordinates of a mechanism, which move it with its loops closed.

    The nv coordinates are those of q, joint by joint, but with rotation vectors instead of quaternions. As many independent coordinates are chosen as
    there are degrees of freedom at q: coordinates of motors first, then coordinates with large changes.

    Attributes
    ----------
    names : names of all nv coordinates: the joint's name, with the name of the coordinate if the joint has several
    joints : joint of each coordinate
    lengths : (nv,) True for a length [m], False for an angle [rad]
    chosen : indices of the independent coordinates
    """

    def __init__(self, mechanism: Mechanism, q: Array, time: float = 0.0) -> None:
        self.mechanism, self.time = mechanism, time
        self.names: list[str] = []
        self._single: list[tuple[str, int]] = []
        for name in mechanism.joints:
            labels = [label for label, _ in mechanism.joint(name).type.velocities]
            self.names += [name] if len(labels) == 1 else [f"{name}: {label}" for label in labels]
            self._single += [(name, k) for k in range(len(labels))]
        self.joints = [name for name, _ in self._single]
        self._chart = Chart(mechanism)
        self.loops = ScaledLoops(mechanism, q, time)
        self.lengths = self.loops.sliding
        self.chosen = self._choose(q)

    def coordinates(self, q: ArrayLike) -> Array:
        """Return all coordinates (..., nv) of configurations (..., nq) [rad, m]."""
        return self._chart.difference(self.mechanism.neutral(), np.asarray(q, dtype=np.float64))

    def move_to(self, q: Array, goal: Mapping[int, float]) -> tuple[Array, bool]:
        """Move coordinates to a goal on the current branch; the other independent coordinates do not move.

        Return the last configuration (nq,), and True if the goal was reached.
        """
        rows = sorted({*self.chosen, *goal})
        start = self.coordinates(q)[rows]
        end = [goal.get(k, x) for k, x in zip(rows, start, strict=True)]
        loops = closing(self.mechanism, (), (), tuple(self._single[k] for k in rows))
        neutral = self.mechanism.neutral()
        rows_of_state = np.zeros(0)
        if self.mechanism._asks_for_rows:
            rows_of_state = np.zeros(self.mechanism._pfaffian_numbers(q, None).shape[-1])
        inputs = [np.concatenate([[self.loops.time or 0.0], neutral, rows_of_state, x]) for x in (start, end)]
        steps = np.array([*STEPS, CLOSED])
        answer = loops.robot._move_along_branch(q, loops.fixed_mask, loops.loops.scale(), steps, np.concatenate(inputs))
        return answer[: -branch_outcome.numbers], answer[-2] == 1.0  # fraction of the path

    def reach(self, q: Array, k: int, ends: tuple[float, float]) -> tuple[float, float]:
        """Return the range of independent coordinate k that is reachable within `ends`; the other independent coordinates do not move.

        If the coordinate is in no loop, the range is `ends`.
        """
        rows = self.loops.holonomic
        if not rows.any() or not np.abs(self.loops.jacobian(q)[rows][:, k]).max() > CLOSED:
            return ends
        low, high = (float(self.coordinates(self.move_to(q, {k: end})[0])[k]) for end in ends)
        return low, high

    def _choose(self, q: Array) -> list[int]:
        if self.mechanism.nv == 0:
            return []
        J = self.loops.jacobian(q)[self.loops.holonomic]
        _, sizes, directions = np.linalg.svd(J, full_matrices=True)
        rank = int((sizes > 1e-7 * max(1.0, sizes.max(initial=0.0))).sum())
        scale = self.loops.column_scale
        shown = (self._chart.rates(q, np.eye(self.mechanism.nv)).T * scale / scale[:, None]) @ directions[rank:].T
        projector = shown @ shown.T
        motors = [k for k, name in enumerate(self.joints) if name in self.mechanism.actuated]
        block = projector[np.ix_(motors, motors)]
        driven = min(int(np.linalg.matrix_rank(block, tol=1e-6, hermitian=True)), len(projector) - rank)
        first = [motors[k] for k in showing(block, driven)]
        chosen = sorted(showing(projector, len(projector) - rank, first))
        return [k for k in chosen if k in motors] + [k for k in chosen if k not in motors]


# ---- the panel -------------------------------------------------------------------------------------------------------

NAMES = {"bodies": "body", "joints": "joint", "frames": "frame"}
SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "5")
# [px] height of the panel on a phone, and additional heights for the playback and for each row
SHEET, PLAYBACK, ROW = 220, 70, 34
MARKUP = re.compile(r"[\\`*_~<>\[\]&|!#]")  # characters with a meaning in Markdown, which are escaped by a backslash
# largest number of sliders whose range is computed by moving the mechanism; limited, so that views open quickly
FOLLOWED = 8


class Panel:
    """Panel with the controls of a viewer, in a viser server.

    Attributes
    ----------
    status, note : line for errors, and line that explains arrows and ghosts
    home, views : button that resets the view, and buttons of the camera presets
    configurations : menu of named configurations, if there are any
    sliders : coordinate to its slider, as in :attr:`Inputs.names`
    boxes : "bodies", "joints" and "frames" (each only if there are any) to the checkbox that shows their names
    visuals : checkbox that shows meshes instead of bars, if bodies have visuals
    forces, dark : checkboxes for arrows of forces, and for dark colours
    play, clock, speed, repeat : controls of the playback, only with runs
    run : slider of the displayed run, only with several runs
    """

    def __init__(self, gui: Any, inputs: Inputs, q: Array, scene: Scene, span: tuple[float, float], runs: int) -> None:
        self._inputs, self._plays = inputs, runs > 0
        self.sliders: dict[str, Any] = {}
        gui.main_panel.dock_right()
        gui.set_panel_label(inputs.mechanism.name)
        self.status = gui.add_markdown("", visible=False)
        if runs:
            self._playback(gui, *span, runs)
        self.home = gui.add_button("Home", hint="initial configuration and camera")
        named = [name for name, _ in inputs.mechanism.description.configurations if name != "home"]
        if named:
            self.configurations = gui.add_dropdown("configuration", ("home", *named), initial_value="home")
        self.views = gui.add_button_group("view", PRESETS)
        with gui.add_folder("Show", expand_by_default=False):
            self.boxes = {kind: gui.add_checkbox(f"{NAMES[kind]} names", False) for kind in scene.labels.kinds}
            self.forces = gui.add_checkbox("forces", False, hint="forces of joints on their children")
            if scene.visuals:
                self.visuals = gui.add_checkbox("meshes", True, hint="off: bars instead of meshes")
            self.dark = gui.add_checkbox("dark", False)
            if runs:
                self.speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
                self.repeat = gui.add_checkbox("repeat", True)
        self.note = gui.add_markdown("", visible=False)
        if inputs.chosen:
            self._joints(gui, inputs.coordinates(q), q, scene.skeleton.size)
        scene.camera.sheet = SHEET + (PLAYBACK if runs else 0) + ROW * ((runs > 1) + bool(named))
        self.theme(gui, False)

    def theme(self, gui: Any, dark: bool) -> None:
        """Set light or dark colours on all pages."""
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(68, 119, 170), dark_mode=dark)

    def show(self, coordinates: Array, time: float) -> None:
        """Set the sliders to the mechanism's coordinates (nv,) [rad, m], and the clock to a time [s]."""
        for k in self._inputs.chosen:
            slider, value = self.sliders[self._inputs.names[k]], _shown(coordinates[k])
            slider.min, slider.max = min(slider.min, value), max(slider.max, value)
            slider.value = value
        if self._plays:
            self.clock.value = time

    def set_status(self, text: str) -> None:
        """Set the text of the status line; "" hides it."""
        self.status.content, self.status.visible = _plain(text), bool(text)

    def set_note(self, text: str) -> None:
        """Set the text of the note under the checkboxes; "" hides it."""
        content = _plain(text.strip())
        if content != self.note.content:
            self.note.content, self.note.visible = content, bool(content)

    def _playback(self, gui: Any, first: float, last: float, runs: int) -> None:
        # a slider needs a positive range, also for a trajectory of one sample
        last = last if last > first else first + 1.0
        self.play = gui.add_button("Play")
        self.clock = gui.add_slider("time [s]", first, last, round_length((last - first) / 5000), first)
        if runs > 1:
            self.run = gui.add_slider("run", 0, runs - 1, 1, 0)

    def _joints(self, gui: Any, values: Array, q: Array, size: float) -> None:
        below = gui.add_panel()
        below.dock_below(gui.main_panel)
        with below.add_tab("Joints"):
            for number, k in enumerate(self._inputs.chosen):
                lowest, highest = self._range(q, k, float(values[k]), size, number < FOLLOWED)
                label = f"{self._inputs.names[k]} [{'m' if self._inputs.lengths[k] else 'rad'}]"
                step = round_length((highest - lowest) / 2000)
                self.sliders[self._inputs.names[k]] = gui.add_slider(label, lowest, highest, step, _shown(values[k]))

    def _range(self, q: Array, k: int, value: float, size: float, follow: bool) -> tuple[float, float]:
        """Return the range of a slider, limited by the loops and by the joint's limits. Without both, it is one rotation, or the mechanism's size."""
        inputs = self._inputs
        joint = inputs.mechanism.joint(inputs.joints[k])
        ends = np.array([value - size, value + size] if inputs.lengths[k] else [-math.pi, math.pi])
        if joint.limits is not None and joint.nq == joint.nv:
            limits = np.array(joint.limits)[:, inputs.joints[:k].count(joint.name)]
            ends = np.where(np.isfinite(limits), limits, ends)
        ends = np.array([min(ends[0], value), max(ends[1], value)])
        if follow:
            reached = inputs.reach(q, k, (float(ends[0]), float(ends[1])))
            # a slider needs a positive range, also if the loops block the coordinate at q
            ends = np.array(reached) if reached[1] - reached[0] > 1e-2 * inputs.loops.column_scale[k] else ends
        # round outward to the three decimals of a slider's label
        return math.floor(1e3 * ends[0]) / 1e3, math.ceil(1e3 * ends[1]) / 1e3


def _plain(text: str) -> str:
    """Return a text escaped for Markdown. Names come from files and could contain tags and scripts, which viser would render."""
    return MARKUP.sub(r"\\\g<0>", text)


def _shown(value: float) -> float:
    """Return a value rounded to the digits of a slider; -0 becomes 0."""
    return round(float(value), 6) + 0.0


# ---- server -----------------------------------------------------------------------------------------------------------


def serve(host: str, port: int) -> tuple[Any, str]:
    """Start a viser server, and return it with its URL, which contains a key.

    The server uses the first free port from `port` on, or any free port if `port` is 0.
    """
    from ._gate import Gate, guarded

    address, free = _free(host, port)
    ip = ipaddress.ip_address(address)
    names = {host.lower(), "localhost"}
    if not ip.is_loopback:
        risk = f"everyone who can reach port {free} of this machine and has the view's address can see and move it"
        warnings.warn(f"host {host!r}: {risk}; pass host='127.0.0.1' for this machine only", stacklevel=3)
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    gate, started = Gate(names), Future[Any]()

    def start() -> None:
        try:
            started.set_result(guarded(gate, address, free))
        except Exception as error:
            started.set_exception(error)

    # run viser's constructor in a thread, because it would wait forever if viser's own thread fails
    threading.Thread(target=start, name="sarrus-view-start", daemon=True).start()
    if not wait([started], PATIENCE).done:
        raise RuntimeError(f"the view's server did not start at {host} port {free} within {PATIENCE:g} s")
    server = started.result()
    shown = ("[::1]" if ip.version == 6 else "127.0.0.1") if ip.is_unspecified else f"[{host}]" if ":" in host else host
    return server, f"http://{shown}:{server.get_port()}/{gate.key}"


def _free(host: str, port: int) -> tuple[str, int]:
    """Return the numeric address of a host of this machine, and its first free port."""
    if isinstance(port, bool) or not hasattr(port, "__index__"):
        raise TypeError(f"port must be an integer; got {port!r}")
    first = operator.index(port)
    if not 0 <= first <= 65535:
        raise ValueError(f"port must be from 0 to 65535; got {first}")
    if not isinstance(host, str):
        raise TypeError(f"host must be an address or a name, such as '127.0.0.1'; got {host!r}")
    if not host:
        raise ValueError(
            "host is empty; pass '127.0.0.1' for this machine only, '0.0.0.0' for all machines that can reach it"
        )
    try:
        family, *_, place = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    except (OSError, ValueError) as error:  # UnicodeError is a ValueError
        raise ValueError(f"host {host!r} cannot be resolved ({error}); '127.0.0.1' is this machine") from None
    address = str(place[0])
    for free in range(first, 65536):
        try:
            with socket.create_server((address, free), family=family) as tried:
                return address, int(tried.getsockname()[1])
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                fault = f"is not an address of this machine ({error.strerror})"
                raise ValueError(f"host {host!r} {fault}") from None
    raise ValueError(f"no port from {first} to 65535 is free on host {host!r}")
