"""Tables of URDF, SDF, MJCF and USD: parameters of joints, entries that are not read, and the grammar of elements.

Each parameter of a joint is one row of a table. Reading, writing, the error of a format that lacks the parameter, and the documentation are generated
from the row. A row with the values CUSTOM is an entry that one number cannot represent: the format's reader and writer have code for it.
"""

from __future__ import annotations

import math

from ..shapes import Box, Capsule, Cylinder, Ellipsoid, Mesh, Sphere
from . import extensions
from .mujoco import FLAGS
from .table import BOUND, CUSTOM, POSITIVE, Format, Row

NO_LIMIT = 1e16  # the number by which SDF represents "no limit"
WAY_OUT = "compile the file with MuJoCo: sarrus.io.from_mujoco(mujoco.MjModel.from_xml_path(...))"
_PLACE, _SPEED, _EFFORT = "rad, m", "rad/s, m/s", "N m, N"
_DAMPING, _STIFFNESS, _INERTIA = "N m s/rad, N s/m", "N m/rad, N/m", "kg m², kg"


def page() -> str:
    """Return the documentation page with all tables, in Markdown."""
    formats = (URDF, SDF, MJCF, USD)
    return "\n".join(["# Entries of model files", "", *(line for entry in formats for line in entry.page())])


# ---- URDF ------------------------------------------------------------------------------------------------------------

URDF = Format(
    "URDF",
    {
        "robot": f"name version | link joint drake:joint frame loop loop_joint constraint coupling {' '.join(extensions.TAGS)} (material transmission "
        "gazebo ros2_control sensor)",
        "link": "name | inertial (visual collision)",
        "inertial": "| origin mass inertia",
        "joint": "name type (independent) | origin parent child axis limit dynamics mimic (calibration safety_controller)",
        "drake:joint": "name type | origin parent child axis limit dynamics drake:screw_thread_pitch",
        "drake:screw_thread_pitch": "value |",
        "frame": "name link xyz rpy |",
        "origin": "xyz rpy |",
        "mass": "value |",
        "inertia": "ixx iyy izz ixy ixz iyz |",
        "axis": "xyz frame |",
        "mimic": "joint multiplier offset |",
        "parent": "link |",
        "child": "link |",
        # extensions that close loops
        "loop": "name type | predecessor successor axis",
        "predecessor": "link | origin",
        "successor": "link | origin",
        "coupling": "name | predecessor successor ratio",
        "ratio": "value |",
        "loop_joint": "name type | link1 link2 parent child parent_origin child_origin axis limit dynamics",
        "link1": "link xyz rpy |",
        "link2": "link xyz rpy |",
        "constraint": "name type | parent parent_origin parent_axis child child_origin child_axis limit dynamics",
        "parent_origin": "xyz rpy |",
        "child_origin": "xyz rpy |",
        "parent_axis": "xyz |",
        "child_axis": "xyz |",
        **extensions.KNOWN,
    },
    [
        Row("joint", "limit/@lower", "lower", unit=_PLACE),
        Row("joint", "limit/@upper", "upper", unit=_PLACE),
        Row("joint", "limit/@effort", "effort_limit", BOUND, unit=_EFFORT),
        Row("joint", "limit/@velocity", "velocity_limit", BOUND, unit=_SPEED),
        Row("joint", "dynamics/@damping", "damping", POSITIVE, unit=_DAMPING),
        Row("joint", "dynamics/@friction", "friction", POSITIVE, unit=_EFFORT),
        Row("springStiffness springReference turnGravityOff", "", note="<{tag}> in <gazebo> is not read"),
        Row("selfCollide self_collide", "", values="false 0", note="<{tag}> is not read: links that no joint connects may touch each other"),
        Row("dampingFactor", "", note="<dampingFactor> in <gazebo> is not read: links move without this drag"),
    ],
    joints={
        "Fixed": "fixed", "Revolute": "revolute", "Prismatic": "prismatic", "Spherical": "ball", "Free": "floating", "Planar": "planar",
    },
    shapes={Box: "box @size", Cylinder: "cylinder @radius @length", Sphere: "sphere @radius", Mesh: "mesh @filename @scale"},
    color="material/color/@rgba",
)  # fmt: skip

# ---- SDF -------------------------------------------------------------------------------------------------------------

_AXIS = "| xyz limit dynamics mimic use_parent_model_frame"
SDF = Format(
    "SDF",
    {
        "sdf": "version | world model (light actor)",
        "world": "name | gravity model include joint frame physics (light actor plugin scene gui audio state road magnetic_field "
        "atmosphere spherical_coordinates wind population)",
        "physics": "name type default | gravity (max_step_size real_time_factor real_time_update_rate ode bullet dart simbody "
        "max_contacts)",
        "model": "name canonical_link placement_frame | pose static link joint frame model include drake:joint (self_collide "
        f"allow_auto_disable enable_wind plugin gripper audio drake:collision_filter_group) {' '.join(extensions.TAGS)}",
        "include": "merge | uri name pose static placement_frame (plugin)",
        "link": "name type | pose inertial gravity visual collision (self_collide kinematic must_be_base_link enable_wind "
        "velocity_decay sensor light projector audio_sink audio_source battery particle_emitter plugin)",
        "inertial": "auto | pose mass inertia density (auto_inertia_params)",
        "inertia": "| ixx ixy ixz iyy iyz izz",
        "pose": "relative_to frame degrees rotation_format |",
        "frame": "name attached_to | pose",
        "joint": "name type | pose parent child axis axis2 gearbox_ratio gearbox_reference_body thread_pitch screw_thread_pitch "
        "drake:mimic drake:gear_ratio (physics sensor plugin drake:controller_gains)",
        "drake:joint": "name type | drake:parent drake:child drake:damping",
        "drake:mimic": "joint multiplier offset |",
        "axis": _AXIS,
        "axis2": _AXIS,
        "xyz": "expressed_in |",
        "limit": "| (stiffness dissipation)",
        "mimic": "joint axis | multiplier offset reference",
        **extensions.KNOWN,
    },
    [
        Row("axis axis2", "limit/lower", "lower", default=-NO_LIMIT, unit=_PLACE),
        Row("axis axis2", "limit/upper", "upper", default=NO_LIMIT, unit=_PLACE),
        # an effort limit of zero makes the joint passive
        Row("axis axis2", "limit/effort", "effort_limit", BOUND, default=-1.0, unit=_EFFORT),
        Row("axis axis2", "limit/velocity", "velocity_limit", BOUND, default=-1.0, unit=_SPEED),
        Row("axis axis2", "dynamics/damping", "damping", POSITIVE, unit=_DAMPING),
        Row("axis axis2", "dynamics/friction", "friction", POSITIVE, unit=_EFFORT),
        Row("axis axis2", "dynamics/spring_stiffness", "stiffness", POSITIVE, unit=_STIFFNESS),
        Row("axis axis2", "dynamics/spring_reference", "rest", unit=_PLACE, needs="stiffness"),
        Row("joint", "drake:rotor_inertia", "armature", CUSTOM, unit=_INERTIA),  # times drake:gear_ratio, squared
        Row("kinematic", "", values="true 1", note="<kinematic> is not read: the link moves by its joints and forces"),
        Row("self_collide", "", values="false 0", note="<{tag}> is not read: links that no joint connects may touch each other"),
        Row("collide_without_contact", "", values="true 1", note="collide_without_contact is not read: contact forces act on the shape"),
        Row("collide_bitmask category_bitmask", "", note="<{tag}> is not read: no pair of shapes is excluded by it"),
        Row("drake:collision_filter_group", "", note="<{tag}> is not read: no pair of shapes is excluded by it"),
        Row("gripper", "", note="<gripper> is not read: grasped bodies are not attached"),
    ],
    joints={
        "Fixed": "fixed", "Revolute": "revolute", "Prismatic": "prismatic", "Helical": "screw", "Universal": "universal", "Spherical": "ball",
    },
    shapes={
        Box: "box size", Cylinder: "cylinder radius length", Sphere: "sphere radius", Mesh: "mesh uri scale",
        Capsule: "capsule radius length", Ellipsoid: "ellipsoid radii",
    },
    color="material/ambient material/diffuse",
)  # fmt: skip

# ---- MJCF ------------------------------------------------------------------------------------------------------------

ORIENTATION = ("quat", "euler", "axisangle", "xyaxes", "zaxis")
_ORIENTED = " ".join(ORIENTATION)
_GEOM = f"""size pos {_ORIENTED} type fromto mass density shellinertia mesh material rgba group (contype conaffinity condim
    friction solmix solref solimp gap hfield fitscale fluidshape fluidcoef user castshadow)"""
_TENDON = """name class (range limited margin group material rgba width user solreflimit solimplimit solreffriction solimpfriction
    actuatorfrclimited actuatorfrcrange springlength springyield)"""
_EQUALITY = "name class active (solref solimp)"
_INSIDE = "frame body joint freejoint geom site inertial composite flexcomp attach replicate (camera light)"
_DRIVES = "general motor position velocity intvelocity orientation pid damper cylinder muscle adhesion dcmotor plugin"
DRIVES = tuple(_DRIVES.split())
_ACTUATOR = """joint jointinparent tendon site body slidersite cranksite refsite gear ctrlrange ctrllimited forcerange forcelimited armature
    damping gaintype biastype dyntype gainprm (actdim actearly actlimited actrange area bias biasprm class cogging controller
    cranklength dampratio delay diameter dynprm ffrange force fpmax fvmax gain group imax inductance inheritrange input
    instance interp ki kp kv lengthrange lmax lmin lugre motorconst name nominal nsample plugin posrange range resistance
    saturation scale slewmax tausmooth thermal timeconst user velrange vmax)"""
_TENDONS = "fixed spatial tendon"
MJCF = Format(
    "MJCF",
    {
        "mujoco": """model | compiler option default asset worldbody equality tendon actuator keyframe deformable
            (size visual statistic sensor contact custom extension)""",
        "compiler": """angle eulerseq autolimits inertiafromgeom inertiagrouprange boundmass boundinertia balanceinertia settotalmass
            meshdir assetdir (texturedir discardvisual usethread fusestatic conflict fitaabb
            passthrough saveinertial savecompiled savecanonical) | (lengthrange)""",
        "option": """gravity wind (actuatorgroupdisable apirate ccd_iterations ccd_tolerance collision cone impratio integrator
            iterations jacobian ls_iterations ls_tolerance magnetic mpr_iterations mpr_tolerance noslip_iterations noslip_tolerance
            o_friction o_margin o_solimp o_solref sdf_initpoints sdf_iterations sleep_tolerance solver timestep tolerance) | flag""",
        "flag": f"""{" ".join(FLAGS)} passive (contact clampctrl warmstart filterparent actuation refsafe sensor midphase eulerdamp autoreset
            nativeccd island multiccd energy fwdinv invdiscrete sleep diagexact ipc speculative sensornoise) |""",
        "default": f"class | default joint geom site equality tendon mesh material {_DRIVES} (texture camera light pair skin)",
        "asset": "| mesh material (hfield skin texture model)",
        "mesh": "name class file scale inertia refpos refquat (content_type face material maxhullvert normal params smoothnormal texcoord "
        "vertex builtin) | (plugin)",
        "material": "name class rgba (emission metallic reflectance roughness shininess specular texrepeat texture texuniform) | (layer)",
        "worldbody": f"| {_INSIDE}",
        "body": f"name childclass pos {_ORIENTED} (fuse simple sleep user) | {_INSIDE}",
        "replicate": f"count sep offset euler | {_INSIDE}",
        "frame": f"name childclass pos {_ORIENTED} | {_INSIDE}",
        "inertial": f"pos {_ORIENTED} mass diaginertia fullinertia |",
        # the tag has three meanings: a joint of a body, an entry of an equality, an entry of a tendon
        "joint": """name class type pos axis limited ref actuatorfrclimited springdamper (group margin solreflimit solimplimit solreffriction
            solimpfriction actuatorgravcomp user) joint coef active joint1 joint2 polycoef (solref solimp) |""",
        "freejoint": "name (group) |",
        "geom": f"name class {_GEOM} | (plugin)",
        "site": f"name class pos {_ORIENTED} fromto (type size group material mesh rgba user) |",
        "equality": "active (solref solimp) | connect weld joint tendon flex flexvert flexstrain distance",
        "connect": f"{_EQUALITY} body1 body2 anchor site1 site2 |",
        "weld": f"{_EQUALITY} body1 body2 anchor relpose torquescale site1 site2 |",
        "tendon": f"{_EQUALITY} tendon1 tendon2 polycoef {_TENDON} | fixed spatial",
        "fixed": f"{_TENDON} | joint",
        "spatial": f"{_TENDON} | (site geom pulley)",
        "actuator": f"| {_DRIVES}",
        **dict.fromkeys(DRIVES, f"{_ACTUATOR} | (config)"),
        "keyframe": "| key",
        "key": "name qpos (time qvel act ctrl mpos mquat plastic) |",
    },
    [
        Row("joint", "@range", "limits", CUSTOM, unit=_PLACE, angle=True, switch="limit"),
        Row("joint", "@damping", "damping", POSITIVE, unit=_DAMPING, terms=3, switch="damper"),
        Row("joint", "@frictionloss", "friction", unit=_EFFORT, switch="frictionloss"),
        Row("joint", "@armature", "armature", unit=_INERTIA),
        Row("joint", "@stiffness", "stiffness", POSITIVE, unit=_STIFFNESS, terms=3, switch="spring"),
        Row("joint", "@springref", "rest", unit=_PLACE, needs="stiffness", angle=True),
        Row("joint", "@actuatorfrcrange", "effort_limit", CUSTOM, unit=_EFFORT),
        Row("joint", "@springyield", note="springyield is not read: springs stay elastic"),
        Row("freejoint", "@align", values="true false auto",
            note="align of <freejoint> is not read: the body's frame is not moved"),
        Row("body", "@mocap", values="true false", note="a mocap body does not move"),
        Row("body", "@gravcomp", note="gravcomp is not read"),
        Row("geom", "@margin", note="margin of geoms is not read: contact begins at the surfaces; in MuJoCo it begins at this distance"),
        Row("geom", "@surfacevel", terms=6, note="surfacevel of geoms is not read: surfaces move with their bodies"),
        Row("geom", "@adhesion", note="adhesion of geoms is not read: shapes only push"),
        Row("geom", "@priority", note="priority of geoms is not read: the friction of a pair depends on both geoms"),
        Row(_TENDONS, "@stiffness", terms=3, note="stiffness of tendons is not read"),
        Row(_TENDONS, "@damping", terms=3, note="damping of tendons is not read"),
        Row(_TENDONS, "@armature", note="armature of tendons is not read"),
        Row(_TENDONS, "@frictionloss", note="frictionloss of tendons is not read"),
        Row("compiler", "@alignfree", values="true false", note="alignfree is not read"),
        Row("compiler", "@strippath", values="true false", note="strippath is not read"),
        Row("compiler", "@coordinate", values="global local",
            refusal="has global coordinates; MuJoCo no longer reads them either: write local coordinates"),
        Row("flag", "@override", values="enable disable", note="contact parameters that override those of geoms are not read"),
        Row("option", "@density", note="the drag of the medium is not read"),
        Row("option", "@viscosity", note="the drag of the medium is not read"),
        Row("deformable", "", note="<deformable> is not read"),
        Row("composite flexcomp attach", "", refusal=f"generates bodies and is not read: {WAY_OUT}"),
    ],
    joints={"Fixed": "weld", "Revolute": "hinge", "Prismatic": "slide", "Spherical": "ball", "Free": "free"},
)  # fmt: skip

# ---- USD -------------------------------------------------------------------------------------------------------------

_MASS = "physics:mass physics:density physics:centerOfMass physics:diagonalInertia physics:principalAxes"
_BODY = f"""name type sarrus:frame {_MASS} physics:rigidBodyEnabled physics:kinematicEnabled physics:collisionEnabled
    physics:staticFriction physics:dynamicFriction physics:restitution
    (physics:startsAsleep physics:velocity physics:angularVelocity physics:simulationOwner physics:approximation)"""
_LAW = "belongs to a control law, which is not read: sarrus.io.usd.drives returns it"
USD = Format(
    "USD",
    {
        "stage": "metersPerUnit kilogramsPerUnit upAxis defaultPrim | scene joint shape prim",
        "scene": "name type physics:gravityDirection physics:gravityMagnitude mjc:compiler:angle |",
        "joint": """name type physics:axis physics:body0 physics:body1 physics:localPos0 physics:localPos1 physics:localRot0 physics:localRot1
            physics:jointEnabled physics:excludeFromArticulation physics:minDistance physics:maxDistance
            newton:mimicJoint newton:mimicCoef0 newton:mimicCoef1 newton:mimicEnabled
            (physics:collisionEnabled) | drive limit""",
        "drive": "name physics:type |",
        "limit": "name physics:low physics:high |",
        "shape": f"{_BODY} radius height axis size |",
        "prim": f"{_BODY} |",
    },
    [
        Row("joint", "@physics:lowerLimit", "lower", default=-math.inf, unit="deg, m"),
        Row("joint", "@physics:upperLimit", "upper", default=math.inf, unit="deg, m"),
        Row("joint", "drive/@physics:maxForce", "effort_limit", BOUND, default=math.inf, unit=_EFFORT),
        Row("joint", "@physxJoint:maxJointVelocity", "velocity_limit", BOUND, default=math.inf, unit="deg/s, m/s"),
        Row("joint", "@mjc:damping", "damping", POSITIVE, unit=_DAMPING),
        Row("joint", "@mjc:frictionloss", "friction", POSITIVE, unit=_EFFORT),
        Row("joint", "@mjc:armature", "armature", POSITIVE, unit=_INERTIA),
        Row("joint", "@mjc:stiffness", "stiffness", POSITIVE, unit=_STIFFNESS),
        Row("joint", "@mjc:springref", "rest", unit="deg, m", needs="stiffness"),
        Row("drive", "@physics:stiffness", unit="N m/deg, N/m", note=f"stiffness of drives {_LAW}"),
        Row("drive", "@physics:damping", unit="N m s/deg, N s/m", note=f"damping of drives {_LAW}"),
        Row("drive", "@physics:targetPosition", unit="deg, m", note=f"targetPosition of drives {_LAW}"),
        Row("drive", "@physics:targetVelocity", unit="deg/s, m/s", note=f"targetVelocity of drives {_LAW}"),
    ],
    joints={
        "Fixed": "fixed", "Revolute": "revolute", "Prismatic": "prismatic", "Spherical": "spherical", "Cylindrical": "d6", "Planar": "d6",
    },
)  # fmt: skip
