"""Invalid inputs of functions of closed mechanisms: arrays, rows in batches, options."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import sarrus
from sarrus import (
    ModelError,
    NameNotFoundError,
    ShapeError,
    StateError,
)

NAN, INF = float("nan"), float("inf")
LINKAGE, DELTA = sarrus.mechanisms.four_bar(), sarrus.mechanisms.delta()
HERE, REST = LINKAGE.assemble(), np.zeros(3)
FORM, COG = sarrus.formulations.reduced_dynamics(LINKAGE, HERE, REST), sarrus.formulations.cog_jacobians(LINKAGE, HERE)

# what takes an array, and the name under which its error must speak of it
TAKES_AN_ARRAY = {
    "free_motions": (lambda x: sarrus.formulations.free_motions(LINKAGE, x), "q"),
    "projections": (lambda x: sarrus.formulations.projections(LINKAGE, x), "q"),
    "projected_dynamics q": (lambda x: sarrus.formulations.projected_dynamics(LINKAGE, x, REST), "q"),
    "projected_dynamics v": (lambda x: sarrus.formulations.projected_dynamics(LINKAGE, HERE, x), "v"),
    "projected_dynamics tau": (lambda x: sarrus.formulations.projected_dynamics(LINKAGE, HERE, REST, x), "tau"),
    "virtual_work": (lambda x: sarrus.formulations.virtual_work(LINKAGE, HERE, REST, REST, x), "tau"),
    "reduced_dynamics q": (lambda x: sarrus.formulations.reduced_dynamics(LINKAGE, x, REST), "q"),
    "reduced_dynamics v": (lambda x: sarrus.formulations.reduced_dynamics(LINKAGE, HERE, x), "v"),
    "reduced_force": (FORM.reduced_force, "tau"),
    "forward": (FORM.forward, "force"),
    "inverse": (FORM.inverse, "acceleration"),
    "full_velocity": (FORM.full_velocity, "velocity"),
    "full_acceleration": (FORM.full_acceleration, "acceleration"),
    "constrained_inverse": (sarrus.formulations.free_motions(LINKAGE, HERE).constrained_inverse, "M"),
    "cog_jacobians q": (lambda x: sarrus.formulations.cog_jacobians(LINKAGE, x), "q"),
    "cog_jacobians v": (lambda x: sarrus.formulations.cog_jacobians(LINKAGE, HERE, x), "v"),
    "cog forces": (COG.forces, "acceleration"),
    "cog efforts": (COG.efforts, "acceleration"),
    "actuation_matrix": (LINKAGE.actuation_matrix, "q"),
    "internal_efforts": (LINKAGE.internal_efforts, "q"),
    "exact": (lambda x: LINKAGE.actuator_efforts(HERE, REST, x, exact=True, return_status=True)[1] == 0, "a"),
    "limits": (lambda x: LINKAGE.actuator_efforts(HERE, REST, REST, limits=(x, 9.0)), "limits"),
    "weights": (lambda x: LINKAGE.actuator_efforts(HERE, REST, REST, weights=x), "weights"),
    "preload": (lambda x: LINKAGE.actuator_efforts(HERE, REST, REST, preload=x), "preload"),
    "reactions": (lambda x: sarrus.formulations.reactions(LINKAGE, HERE, REST, REST, multipliers=x), "multipliers"),
    "mobility": (LINKAGE.mobility, "q"),
    "assemble": (LINKAGE.assemble, "near"),
    "coordinates": (lambda x: DELTA.assemble({"elbow1a": x}), "elbow1a"),
    "follow": (lambda x: LINKAGE.follow({"motor": [x, x]}), "motor"),
    "inverse_kinematics": (lambda x: LINKAGE.inverse_kinematics({"coupler": x}), "target"),
}
NO_ARRAYS = {
    "words": "abc",
    "ragged": [[1.0], [2.0, 3.0]],
    "complex": 1j * np.ones(3),
    "objects": object(),
    "too many": np.ones(7),
    "many too many": np.ones((2, 7)),
    "32 axes": np.ones((1,) * 31 + (7,)),
}


@pytest.mark.parametrize("what", NO_ARRAYS)
@pytest.mark.parametrize("function", TAKES_AN_ARRAY)
def test_arrays_that_are_none(function, what):
    """A TypeError or ShapeError of the library, not one of NumPy's; nothing is broadcast or dropped silently."""
    take, name = TAKES_AN_ARRAY[function]
    with pytest.raises((ShapeError, TypeError), match=rf"\b{name}\b"):
        take(NO_ARRAYS[what])


@pytest.mark.parametrize(
    "function",
    [
        "projected_dynamics tau",
        "virtual_work",
        "reduced_dynamics v",
        "forward",
        "actuation_matrix",
        "internal_efforts",
    ],
)
@pytest.mark.parametrize("bad", [NAN, INF])
def test_unsound_rows(function, bad):
    """A StateError for one state; in a batch NaN, without effect on other rows."""
    take, name = TAKES_AN_ARRAY[function]
    size = 1 if function == "forward" else 3
    with pytest.raises(StateError, match=rf"\b{name}\b"):
        take(np.full(size, bad))
    answer = take(np.stack([HERE[:size], np.full(size, bad)]))
    answer = getattr(answer, "acceleration", getattr(answer, "bias", answer))
    assert np.isnan(answer[1]).all()
    assert_array_equal(np.isnan(answer[0]), False)


def test_leading_axes_that_do_not_fit():
    two, three = np.stack([HERE] * 2), np.zeros((3, 3))
    for attempt in (
        lambda: sarrus.formulations.projected_dynamics(LINKAGE, two, REST, three),
        lambda: sarrus.formulations.virtual_work(LINKAGE, two, REST, REST, three),
        lambda: sarrus.formulations.virtual_work(LINKAGE, two, REST, REST, time=np.zeros(3)),
        lambda: sarrus.formulations.reduced_dynamics(LINKAGE, two, three),
        lambda: sarrus.formulations.reduced_dynamics(LINKAGE, two, REST).forward(np.zeros((3, 1))),
        lambda: LINKAGE.actuator_efforts(two, REST, REST, preload=np.zeros((3, 1))),
        lambda: sarrus.formulations.reactions(LINKAGE, two, REST, REST, multipliers=np.zeros((3, 5))),
    ):
        with pytest.raises(ShapeError, match=r"leading axes .*\(3,\)"):
            attempt()


NO_OPTIONS = {
    "starts": (lambda: LINKAGE.assemble(starts=-5), ValueError, "starts must be at least 0; got -5"),
    "starts in parts": (lambda: LINKAGE.assemble(starts=1.5), TypeError, "starts must be an integer .*; got 1.5"),
    "seed": (lambda: LINKAGE.assemble(seed=-1), ValueError, "seed must be at least 0; got -1"),
    "time": (lambda: LINKAGE.assemble(time="now"), TypeError, "time must be a number; got 'now'"),
    "time of mobility": (lambda: LINKAGE.mobility(HERE, time=NAN), ValueError, "time must be finite; got nan"),
    "attempts": (lambda: LINKAGE.assembly_modes(fixed={"motor": 0.5}, attempts=0), ValueError, "attempts must be at least 1"),
    "tolerance": (lambda: LINKAGE.assemble(tolerance=None), TypeError, "tolerance must be a number; got None"),
    "no tolerance": (lambda: LINKAGE.follow({"motor": [0.5]}, tolerance=0), ValueError, "tolerance must be positive"),
    "less than rounding": (lambda: LINKAGE.follow({"motor": [0.5]}, tolerance=1e-16), ValueError, "at least 1e-13"),
    "turns near no joint": (lambda: LINKAGE.joint_states(LINKAGE.neutral(), near=LINKAGE.neutral()).q, TypeError, "near must be a mapping of joints' names"),
    "targets": (lambda: LINKAGE.inverse_kinematics(None), TypeError, "frames must be a mapping .*; got None"),
    "fixed": (lambda: LINKAGE.inverse_kinematics({}, fixed=3.0), TypeError, "a mapping of joints to coordinates; got 3.0"),
    "limits": (lambda: LINKAGE.actuator_efforts(HERE, REST, REST, limits=1.0), ShapeError, r"limits must be a pair \(lower, upper\)"),
    "actuated": (lambda: LINKAGE.actuator_efforts(HERE, REST, REST, actuated=1), TypeError, "actuated must be a sequence .*; got 1"),
    "wrenches": (lambda: LINKAGE.actuator_efforts(HERE, REST, REST, preload=1, wrenches=[1]), TypeError, r"wrenches must be a mapping .*; got \[1\]"),
    "distribution": (lambda: LINKAGE.actuator_efforts(HERE, REST, REST, distribution=REST), ValueError, "distribution must be"),
    "metric": (lambda: LINKAGE.project_velocity(HERE, REST, metric=REST), ValueError, "metric must be"),
    "coordinate": (lambda: sarrus.formulations.reduced_dynamics(LINKAGE, HERE, REST, independent=[1.0]), TypeError, r"joint's name, or \(name, index\); got 1.0"),
    "coordinates": (lambda: sarrus.formulations.reduced_dynamics(LINKAGE, HERE, REST, independent=1.0), TypeError, "a sequence of joints' names; got 1.0"),
    "task": (lambda: sarrus.formulations.reduced_dynamics(LINKAGE, HERE, REST, task=("tip",)), TypeError, r"task must be a frame, .*; got \('tip',\)"),
    "components": (lambda: sarrus.formulations.operational_inertia(LINKAGE, HERE, "coupler", components=None), TypeError, "components must be .*; got None"),
    "output": (lambda: LINKAGE.mobility(HERE, output=3), TypeError, "output must be a frame, .*; got 3"),
    "description": (lambda: sarrus.Mechanism(LINKAGE), TypeError, "a Mechanism is made from a Description, .*; got <Mechanism 'four-bar'"),
    "bodies in words": (lambda: sarrus.Mechanism(replace(LINKAGE.description, bodies=("rod",))), ModelError, r"description's bodies .*; got \('rod',\)"),
    "one joint": (lambda: sarrus.Mechanism(replace(LINKAGE.description, joints=LINKAGE.description.joints[0])), ModelError, "description's joints .*; got JointSpec"),
    "more axes than NumPy sorts": (lambda: sarrus.formulations.operational_inertia(LINKAGE, np.reshape(HERE, (1,) * 31 + (3,)), "coupler"), ShapeError, "would have 33 axes; expected at most 32"),
    "random of a matrix": (lambda: LINKAGE.random(HERE.astype(int)[None]), TypeError, "rng must be an integer"),
    "random of half a number": (lambda: LINKAGE.random(0.5), TypeError, "rng must be an integer of at least 0; got 0.5"),
    "random in parts": (lambda: LINKAGE.random(0, 1.5), TypeError, "size must be an integer of at least 0; got 1.5"),
    "less than none at random": (lambda: LINKAGE.random(0, (2, -1)), ValueError, "size must be at least 0; got -1"),
    "endless at random": (lambda: LINKAGE.random(0, (2**40, 2**40)), ShapeError, "size .* is too large for an array"),
    "actuated in no sequence": (lambda: LINKAGE.actuation_matrix(HERE, actuated=np.array("motor")), TypeError, "a sequence of joints' names; got array"),
    "coordinates in no sequence": (lambda: sarrus.formulations.reduced_dynamics(LINKAGE, HERE, REST, independent=np.array("motor")), TypeError, "a sequence of joints' names; got array"),
    "time beyond numbers": (lambda: LINKAGE.assemble(time=10**400), ValueError, "time must be a number within the range of float64; got 1000"),
    "endless attempts": (lambda: LINKAGE.assembly_modes(fixed={"motor": 0.5}, attempts=2**70), ValueError, "attempts must be at most 1000000; got 1180"),
    "out": (lambda: LINKAGE.forward_dynamics(HERE, REST, REST, return_reactions=True, out={}), ShapeError, "out must be a writable float64 array; got {}"),
    "out of two": (lambda: LINKAGE.forward_dynamics(HERE, REST, REST, return_reactions=True, out=np.zeros((2, 3))), ShapeError, r"out has shape \(2, 3\)"),
    "out of efforts": (lambda: LINKAGE.actuator_efforts(HERE, REST, REST, preload=1, out=[0.0]), ShapeError, r"out must be a writable, C-contiguous float64 array"),
    "joint": (lambda: LINKAGE.joint(["motor"]), NameNotFoundError, "no joint is named"),
    "constraint": (lambda: LINKAGE.constraint({}), NameNotFoundError, "no constraint is named"),
}  # fmt: skip


@pytest.mark.parametrize(("attempt", "error", "message"), NO_OPTIONS.values(), ids=NO_OPTIONS)
def test_options_that_are_none(attempt, error, message):
    with pytest.raises(error, match=message):
        attempt()


def test_a_start_beyond_what_can_be_squared():
    """The loops cannot be closed, and NumPy raises no warning."""
    with pytest.raises(sarrus.AssemblyError, match="no configuration was found that closes all loops"):
        DELTA.assemble(np.full(DELTA.nq, 1e200), starts=0)


def test_steps_that_never_arrive():
    for step in (0.0, -1.0, NAN, INF, 1e-300):
        with pytest.raises(ValueError, match="max_step"):
            LINKAGE.follow({"motor": [0.5, 0.6]}, max_step=step)
    for step in (0.0, 1e-300, 2.0):
        with pytest.raises(ValueError, match="min_step"):
            LINKAGE.follow({"motor": [0.5, 0.6]}, max_step=9.0, min_step=step)
