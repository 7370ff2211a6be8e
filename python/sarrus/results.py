"""Result classes, for annotations and isinstance. Each is described at the function that returns it."""

from ._core import Status
from ._renamed import RenamedMembers
from .analysis.actuation import JointWrenches
from .analysis.contacts import ContactMotion, Contacts
from .analysis.independent_coordinates import ReducedForm
from .analysis.linear_algebra import FreeMotions
from .analysis.linearization import Equilibrium, Linearization, Modes
from .analysis.mobility import ActuationMobility, Mobility, MobilityMap
from .calibration import Calibration
from .design import Budget, Design
from .dynamics.derivatives import ForwardDynamicsDerivatives, InverseDynamicsDerivatives
from .dynamics.loop_operations import JointStates, LoopReactions
from .dynamics.operations import Constraint, Joint, Kinematics
from .dynamics.state_derivatives import DifferenceDerivatives, IntegrateDerivatives, MotionDerivatives, StateDerivatives
from .floating.partition import EndPoint, FreeFloatingForm
from .floating.planning import DynamicSingularityMap, FreeFloatingMotion, ReactionNullSpace
from .formulations.cog import CogJacobians
from .formulations.geometric import PoeFactors, ProjectedEquations
from .formulations.reference_member import ReferenceMemberSolution
from .identification.identify import Excitation, Identification
from .simulation.derivatives import Sensitivities, StateCotangents
from .simulation.histories import ContactForces
from .simulation.sweep import Sweep
from .variants import Variants
from .viewer.viewer import View

__all__ = [
    "ActuationMobility", "Budget", "Calibration", "CogJacobians", "Constraint", "ContactForces", "ContactMotion", "Contacts", "Design", "DifferenceDerivatives", "DynamicSingularityMap", "EndPoint", "Equilibrium", "Excitation",
    "ForwardDynamicsDerivatives", "FreeFloatingForm", "FreeFloatingMotion", "FreeMotions", "Identification", "IntegrateDerivatives", "InverseDynamicsDerivatives", "Joint", "JointStates",
    "JointWrenches", "Kinematics", "Linearization", "LoopReactions", "Mobility", "MobilityMap", "Modes", "MotionDerivatives", "PoeFactors", "ProjectedEquations",
    "ReactionNullSpace", "ReducedForm", "ReferenceMemberSolution", "Sensitivities", "StateCotangents", "StateDerivatives", "Status", "Sweep", "Variants", "View",
]  # fmt: skip

Status.__class__ = RenamedMembers  # type: ignore[assignment]
