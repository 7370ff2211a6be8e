"""A mechanism in the browser: looked at from all sides, moved by hand with its loops closed, and a run played back.

Sliders lead :class:`~sarrus.viewer.panel.Inputs`, a thread plays the trajectory, and both end in `_show`, which puts the
:class:`~sarrus.viewer.scene.Scene` and the :class:`~sarrus.viewer.panel.Panel` where the mechanism is. One lock keeps them and the user's own thread apart.
"""

from __future__ import annotations

import contextlib
import io
import sys
import threading
import time as clock
import warnings
import webbrowser
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Array, ArrayLike, check_mapping, checked_count, checked_number, real_array
from .._files import needed
from ..errors import AssemblyError, ModelError, ShapeError, StateError, printable, raise_no_such_name
from ..figures.skeleton import Skeleton
from ..mechanism import Mechanism, checked_mechanism
from ..simulation.runs import Sweep
from ..simulation.trajectory import Trajectory
from .marks import picked
from .panel import Inputs, Panel
from .scene import Scene
from .serving import serve

if TYPE_CHECKING:
    from typing import Self

FRAMES_PER_SECOND = 30


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
    """Show a mechanism in the browser, with a slider per independent coordinate; loops stay closed as it moves.

    Bodies are shown by their visuals (:meth:`Builder.add_visual`, or those of a model file), or where they have none by bars from joint
    to joint, and by plates where there are more than two. A mesh that cannot be read is left out, with a warning that says why.
    Sliders go as far as loops and joints' limits let each by itself, up to a turn (the first eight; the others stop where loops do).
    Boxes show names, which keep out of each other's way, forces in joints as arrows, of the run or else at rest, and a dark picture.

    Parameters
    ----------
    mechanism : the mechanism
    q : (nq,) configuration to show first; default: the first of the trajectory, or the assembled home. A panel lists the configurations
        that have a name, such as a file's keyframes
    trajectory : a run to play back; or several, those of :func:`~sarrus.simulate_many` or a list, in time with each other: a slider
        chooses one of them, and up to 24 of all are shown beside it, translucent
    trace : names of frames whose origins leave a trace: of the run, or of where sliders have led them
    port : where to serve it, 0 to 65535; the next free one is taken if something else is there, any free one for 0
    host : address or name of this machine to serve it at. "127.0.0.1" shows it to this machine alone; with others, as "0.0.0.0",
        a warning says who can look. Pages of other origins are sent away, and so are those without the key that the view's address ends in
    open_browser : whether to open a browser window; default: not in a notebook, which shows the view as a frame
    block : True waits until Ctrl-C, False returns at once; default: it waits, but not in a notebook

    Returns
    -------
    View : the handle: ``.url``, ``.set(q)``, ``.move({"motor": 0.5})``, ``.play()``, ``.close()``

    Raises
    ------
    ModuleNotFoundError
        viser is not installed: ``pip install 'viser<1.2'``.
    ValueError, RuntimeError
        No port from there on is free, the host is no address of this machine, or the server does not come up.

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
    """A mechanism on show. Any thread may use it; as a context manager it closes itself.

    Attributes
    ----------
    mechanism : what is shown
    trajectory, runs : the run that is played, and all that it is chosen from
    url : where a browser finds it
    sliders : coordinate to its slider, as in :attr:`Inputs.names`
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
        sound = [k for k, start in enumerate(runs.q[:, 0] if isinstance(runs, Sweep) else runs) if _begins(start)]
        if trajectory is not None and not sound:
            raise ValueError("there is nothing to show: no run has a sample")
        self.trajectory: Trajectory | None = runs[sound[0]] if sound else None
        shown = [runs[sound[k]] for k in picked(len(sound))]
        first = min((float(run.t[0]) for run in shown), default=0.0)
        self._span = first, max((float(run.t[-1]) for run in shown), default=0.0)
        if q is None:
            q = mechanism.assemble() if self.trajectory is None else self.trajectory.q[0]
        self._q = self._home = self._checked(q)
        self._time = first
        self._inputs = Inputs(mechanism, self._q, self._time)
        # what callbacks of the browser, the player and the user's own thread share
        self._lock = threading.RLock()
        self._showing = self._closed = False
        self._playing, self._ended = threading.Event(), threading.Event()
        with contextlib.redirect_stdout(io.StringIO()):  # its banner says what url says
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

    # ---- what one does with it ---------------------------------------------------------------------------------------

    @property
    def q(self) -> Array:
        """(nq,) configuration on show."""
        with self._lock:
            return self._q.copy()

    @property
    def time(self) -> float:
        """Time of the trajectory that is shown [s]."""
        return self._time

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the coordinates with sliders."""
        return tuple(self.sliders)

    def set(self, q: ArrayLike) -> None:
        """Show a configuration (nq,), as it is: its loops may be open. A playback pauses."""
        checked = self._checked(q)
        self.pause()
        with self._lock:
            self._q = checked
            self._show()

    def move(self, coordinates: Mapping[str, float]) -> bool:
        """Lead coordinates to values, loops closed; False where they could not come all the way, and the mechanism stays where it was.

        Names are those of :attr:`Inputs.names`: joints, or "joint: coordinate". A playback pauses.
        """
        check_mapping("coordinates", coordinates, "names to values", 0)
        known = {name: k for k, name in enumerate(self._inputs.names)}
        for name in coordinates:
            if name not in known:
                raise_no_such_name("coordinate", name, known)
        goal = {known[name]: checked_number(f"coordinate '{name}'", x, "") for name, x in coordinates.items()}
        self.pause()
        with self._lock:
            self._inputs.loops.time = self._time
            q, arrived = self._inputs.lead(self._q, goal)
            reached = self._inputs.coordinates(q)
            ends = ", ".join(f"{self._inputs.names[k]} ends at {reached[k]:.3f}" for k in goal)
            self._panel.say("" if arrived else f"The loops would open: {ends}.")
            self._q = q if arrived else self._q
            self._show()
        return arrived

    def home(self) -> None:
        """Go back to the first configuration, and to the first look at it."""
        self.pause()
        with self._lock:
            self._q, self._time = self._home, self._span[0]
            self._panel.say("")
            if self.trajectory is None:
                self._scene.traces.begin()
            self._show()
            self._scene.camera.home()

    def choose(self, run: int) -> None:
        """Show another of several runs, at the same time: its number, from 0 on; IndexError where there is none."""
        run = checked_count("run", run, 0)
        if run >= len(self.runs):
            raise IndexError(f"there are {len(self.runs)} runs; {run!r} is none of them")
        chosen = self.runs[run]
        with self._lock:
            self._panel.say("" if len(chosen) else f"Run {run} has no sample.")
            if len(chosen):
                self.trajectory = chosen
                self._scene.traces.of_run(chosen)
                self.seek(self._time)
            if len(self.runs) > 1 and self._panel.run.value != run:
                self._panel.run.value = run

    def seek(self, time: float) -> None:
        """Show the trajectory, and those beside it, at a time [s], each at its ends beyond them."""
        run, moment = self._run(), checked_number("time", time, "")
        with self._lock:
            self._time = float(np.clip(moment, *self._span))
            q = run.at(np.clip(self._time, run.t[0], run.t[-1]))[0]
            # a run that diverged may end in numbers that are none
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
        """Wait until it is closed, or for Ctrl-C, which closes it."""
        try:
            while not self._ended.wait(0.2):
                pass
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stop serving; a second time does nothing."""
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

    # ---- moved in the browser ----------------------------------------------------------------------------------------

    def _listen(self) -> None:
        panel = self._panel
        for name, slider in panel.sliders.items():
            slider.on_update(lambda _, name=name: self._slid(name))
        panel.home.on_click(lambda _: self.home())
        if hasattr(panel, "configurations"):
            panel.configurations.on_update(lambda event: self._configured(event.target.value))
        panel.views.on_click(lambda event: self._scene.camera.look(event.client, event.target.value))
        for kind, box in panel.boxes.items():
            box.on_update(lambda event, kind=kind: self._scene.reveal(kind, event.target.value))
        panel.forces.on_update(lambda _: self._redraw())
        panel.dark.on_update(lambda event: self._darken(event.target.value))
        if self._scene.visuals:
            panel.visuals.on_update(lambda event: self._scene.dress(event.target.value))
        if self.trajectory is not None:
            panel.play.on_click(lambda _: self.pause() if self._playing.is_set() else self.play())
            panel.clock.on_update(lambda _: self._sought())
        if len(self.runs) > 1:
            panel.run.on_update(lambda _: self._chose())

    def _slid(self, name: str) -> None:
        """A slider was moved: by hand, unless it is us who show where the mechanism is."""
        with self._lock:
            if self._showing or self._closed:
                return
            # read under the lock: of many messages about one drag the last counts
            self.move({name: float(self.sliders[name].value)})

    def _configured(self, name: str) -> None:
        """A configuration was chosen: loops closed near it, where they close."""
        with self._lock:
            q = self._home
            if name != "home":
                q = self.mechanism.configuration(name)
                with contextlib.suppress(AssemblyError):
                    q = self.mechanism.assemble(near=q, time=self._time)
            self.set(q)

    def _sought(self) -> None:
        with self._lock:
            if not self._showing and not self._closed:
                self.pause()
                self.seek(float(self._panel.clock.value))

    def _chose(self) -> None:
        with self._lock:
            if not self._showing and not self._closed:
                self.choose(int(self._panel.run.value))

    def _redraw(self) -> None:
        with self._lock:
            self._show()

    def _darken(self, dark: bool) -> None:
        with self._server.atomic():
            self._scene.darken(dark)
            self._panel.theme(self._server.gui, dark)

    # ---- showing -----------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        """Put all bodies where q has them, and sliders with them."""
        now = self._inputs.coordinates(self._q)
        self._showing = True
        try:
            with self._server.atomic():
                self._scene.show(self._q)
                self._panel.show(now, self._time)
                forces = self._scene.forces
                forces.shown = bool(self._panel.forces.value)
                text = forces.show(self._q, self.trajectory, self._time)
                if ghosts := self._scene.ghosts:
                    ghosts.show(self._time)
                    text += f"\n\nBeside it {len(ghosts.runs)} of {len(self.runs)} runs."
                if self.trajectory is None:
                    self._scene.traces.go_on(self._q)
                self._panel.explain(text)
        finally:
            self._showing = False

    def _play(self) -> None:
        """What the player's thread does: as often as a film changes, one more picture."""
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
            raise ModelError("there is no trajectory to play: view(mechanism, trajectory=...)")
        return self.trajectory

    def _checked(self, q: ArrayLike) -> Array:
        array = real_array("q", q)
        if array.shape != (self.mechanism.nq,):
            raise ShapeError(f"q has shape {array.shape}; a view shows one configuration, ({self.mechanism.nq},)")
        if not np.isfinite(array).all():
            raise StateError("q must be finite to be shown")
        return np.asarray(self.mechanism.normalize(array))


def _checked_runs(mechanism: Mechanism, trajectory: Any) -> Sweep | Sequence[Trajectory]:
    """What can be played back of it."""
    if trajectory is None:
        return ()
    runs = (trajectory,) if isinstance(trajectory, Trajectory) else trajectory
    several = isinstance(runs, Sequence) and all(isinstance(run, Trajectory) for run in runs)
    if not several and not isinstance(runs, Sweep):
        raise TypeError(f"trajectory must be a Trajectory, a list of them or a Sweep; got {trajectory!r}")
    if isinstance(runs, Sweep) and runs.mechanisms is not None:
        _check_alike(mechanism, runs)
        return runs
    for run in (runs,) if isinstance(runs, Sweep) else runs:
        if run.mechanism != mechanism:
            raise ModelError(f"the trajectory is one of '{run.mechanism.name}', not of '{mechanism.name}'")
    return runs


def _check_alike(mechanism: Mechanism, runs: Sweep) -> None:
    """ModelError where a run's own mechanism is drawn in other lines: masses may differ, lengths may not."""
    q = np.stack([mechanism.random(seed) for seed in (0, 1)])
    lines = Skeleton(mechanism).segments_flat(q)
    for robot in {id(robot): robot for robot in runs.mechanisms or ()}.values():
        drawn = Skeleton(robot).segments_flat(q) if robot.joints == mechanism.joints else lines[:0]
        if drawn.shape != lines.shape or not np.allclose(drawn, lines):
            k = next(k for k, one in enumerate(runs.mechanisms or ()) if one is robot)
            raise ModelError(
                f"the mechanism of run {k} has other lengths than '{mechanism.name}': view it alone, view(runs.mechanisms[{k}], trajectory=runs[{k}])"
            )


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this, which shows what a cell returns."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def _begins(run: Trajectory | Array) -> bool:
    """Whether a run, or the first state of one, is there."""
    return len(run) > 0 if isinstance(run, Trajectory) else bool(np.isfinite(run).all())
