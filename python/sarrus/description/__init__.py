"""What a mechanism is described by: joint types, constraints, bodies, frames, looks; plain data, and what the core takes of it."""

from .constraints import ConstraintSpec as ConstraintSpec
from .constraints import CouplerSpec as CouplerSpec
from .constraints import DistanceSpec as DistanceSpec
from .constraints import PfaffianSpec as PfaffianSpec
from .constraints import RollingSpec as RollingSpec
from .constraints import TargetSpec as TargetSpec
from .specs import BodySpec as BodySpec
from .specs import Box as Box
from .specs import Cylinder as Cylinder
from .specs import Description as Description
from .specs import FrameSpec as FrameSpec
from .specs import JointSpec as JointSpec
from .specs import Mesh as Mesh
from .specs import Shape as Shape
from .specs import Sphere as Sphere
from .specs import SpringSpec as SpringSpec
from .specs import VisualSpec as VisualSpec
from .specs import without_effect as without_effect
