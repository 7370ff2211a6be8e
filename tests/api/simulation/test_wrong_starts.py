"""Arguments of runs with wrong types: the error contains the argument and the expected type."""

import warnings

import numpy as np
import pytest

import sarrus
from sarrus import control

PENDULUM, FOUR_BAR = sarrus.mechanisms.pendulum(), sarrus.mechanisms.four_bar()


@pytest.mark.parametrize("robot", [PENDULUM, FOUR_BAR])
def test_a_checkpoint_with_a_stabilisation_that_there_is_not(robot):
    run = sarrus.simulate(robot, robot.assemble(), np.zeros(robot.nv), 0.01)
    with pytest.raises(
        sarrus.ModelError, match=r"'stabilisation' of the checkpoint must be one of 'none', .*; got 'text'"
    ):
        sarrus.simulate(robot, resume={**run.checkpoint, "stabilisation": "text"}, duration=0.01)


def test_joints_that_are_a_number():
    with pytest.raises(TypeError, match="joints of EffortTable must be a sequence of names; got 5"):
        sarrus.simulate(PENDULUM, [0.1], [0.0], 0.1, control.EffortTable([0.0, 1.0], [[1.0], [2.0]], joints=5))


@pytest.mark.parametrize("threads", [2**63, 2**70])
def test_more_threads_than_there_can_be(threads):
    with pytest.raises(ValueError, match="threads must be at most 65536; got"):
        sarrus.simulate_many(PENDULUM, [[0.1]], [0.0], 0.1, threads=threads)


@pytest.mark.parametrize("call", [sarrus.simulate, sarrus.simulate_many])
def test_rows_of_different_lengths(call):
    with pytest.raises((TypeError, ValueError), match=r"q must be .*numbers.*; got \[\[1, 2\], \[3\]\]"):
        call(FOUR_BAR, [[1, 2], [3]], np.zeros(3), 0.1)


@pytest.mark.parametrize("law", [control.ComputedTorque, control.PDPlus])
def test_a_target_of_a_joint_that_closes_a_loop(law):
    with pytest.raises(
        sarrus.ModelError,
        match=f"joint 'pin2' closes a loop and has no target of {law.__name__}: add it with tree=True",
    ):
        sarrus.simulate(FOUR_BAR, FOUR_BAR.assemble(), np.zeros(3), 0.1, law({"pin2": 0.4}, 10.0, 10.0))


@pytest.mark.parametrize("many", [False, True])
def test_open_starts_are_told(many):
    """Above 1e-3 of the mechanism's length a warning names the joint that moves most; above its length there is no run."""
    home = FOUR_BAR.assemble()

    def run(off):
        q = home + np.array([off, 0.0, 0.0])
        if many:
            return sarrus.simulate_many(FOUR_BAR, [home, q], np.zeros(3), 0.01).status[1]
        return sarrus.simulate(FOUR_BAR, q, np.zeros(3), 0.01).status

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(1e-4)
    with pytest.warns(
        sarrus.DriftWarning, match=r"open in the initial state.* most of all joint 'pin1', by 0\.\d+ rad"
    ):
        run(0.05)
    if many:
        assert run(1.2) == sarrus.results.Status.INVALID_STATE
    else:
        with pytest.raises(sarrus.StateError, match=r"pass mechanism\.assemble"):
            run(1.2)


def test_starts_where_a_motion_is_not_yet_are_told_with_the_time():
    b = FOUR_BAR.to_builder()
    b.add_prescribed_motion("drive", "motor", sarrus.laws.polynomial(0.5, 6.0))
    robot = b.build()
    q = robot.assemble()
    with pytest.warns(
        sarrus.DriftWarning, match=r"most of all joint '\w+'.* mechanism\.assemble\(near=q, time=0\.01\), with fixed="
    ):
        sarrus.simulate(robot, q, np.zeros(3), 0.01, start=0.01)
    with pytest.raises(sarrus.StateError, match=r"pass mechanism\.assemble\(near=q, time=0\.5\)"):
        sarrus.simulate(robot, q, np.zeros(3), 0.01, start=0.5)
    assert sarrus.simulate(robot, robot.assemble(near=q, time=0.5), np.zeros(3), 0.01, start=0.5).status == "finished"
