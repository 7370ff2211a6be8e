"""Model files in, mechanisms out, and back.

`load`, `load_builder` and `loads` choose a reader by suffix or by how the document begins. Each reader is one module and gives a
`sarrus.Builder`, so that a model can be added to before it is built. `save` chooses a writer by suffix.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._arrays import checked_path
from .._deferred import attributes
from .._files import read_bytes
from ..building.builder import Builder
from ..errors import ModelError, printable
from ..mechanism import Mechanism

if TYPE_CHECKING:
    from . import complete as complete
    from . import mjcf as mjcf
    from . import sdf as sdf
    from . import urdf as urdf
    from . import usd as usd
    from .mujoco import from_mujoco
    from .pinocchio import from_pinocchio, to_pinocchio
    from .saving import save
    from .urdf_loops import Loops

__all__ = ["from_mujoco", "from_pinocchio", "load", "load_builder", "loads", "save", "to_pinocchio"]


def __dir__() -> list[str]:
    return sorted(__all__)


__getattr__ = attributes(
    __name__,
    {
        "mujoco": ("from_mujoco",),
        "pinocchio": ("from_pinocchio", "to_pinocchio"),
        "saving": ("save",),
        **{module: (module,) for module in ("complete", "mjcf", "sdf", "urdf", "usd")},
    },
)

# how a document begins: a brace, #usda, or the name of its root element; its reader, a module that is loaded for it, and the keyword of `load` for this one
READERS = {
    "robot": ("urdf", "loops"),
    "mujoco": ("mjcf", ""),
    "sdf": ("sdf", "model"),
    "#usda": ("usd", ""),
    "{": ("complete", ""),
}
# where the suffix does not tell, the document does
SUFFIXES = {
    ".urdf": "robot",
    ".xacro": "robot",
    ".xml": "",
    ".mjcf": "mujoco",
    ".sdf": "sdf",
    ".world": "sdf",
    ".json": "{",
}
SUFFIXES |= dict.fromkeys((".usd", ".usda", ".usdc", ".usdz"), "#usda")


MOST_BYTES = 2**30  # of a file, before it is known what it holds


def load(
    path: str | os.PathLike[str], *, floating_base: bool | None = None,
    package_dirs: Iterable[str | os.PathLike[str]] = (), loops: Loops = None, model: str | None = None,
) -> Mechanism:  # fmt: skip
    """Read a mechanism from a model file. What becomes of each part of it: :mod:`sarrus.io.urdf`, :mod:`sarrus.io.mjcf`, :mod:`sarrus.io.sdf`,
    :mod:`sarrus.io.usd`; sarrus' own form: :mod:`sarrus.io.complete`.

    Parameters
    ----------
    path : file name; the suffix tells the format: `.urdf`; `.mjcf`; `.sdf`, `.world`; `.usd`, `.usda`, `.usdc`, `.usdz` with
        ``pip install usd-core``; `.json`, sarrus' own; `.xml`, where the root element does; `.xacro` with ``pip install xacro``, which runs what the file's macros say
    floating_base : whether the root link floats (`sarrus.Free`) or is fixed to the ground; default: what the format means, that a
        URDF's root is fixed, and what nothing in an SDF holds floats
    package_dirs : folders that hold the packages of "package://" and "model://" names, or are one; what a file includes or shows may lie in them
    loops : of a URDF: a file beside it that says how its loops close (`robot.yaml`, needs ``pip install pyyaml``), or a dict
        with the same keys: :class:`sarrus.io.urdf_loops.Sidecar`
    model : of an SDF with several models: the name of the one that is read

    Returns
    -------
    Mechanism; what was met in the file and not used is listed in `robot.warnings`

    Raises
    ------
    ModelError
        The file is no model, or one that no mechanism can follow; the message gives file, line and element.
    OSError
        The file cannot be read.
    ModuleNotFoundError
        A package is not installed that it takes.

    Notes
    -----
    Meshes are no part of the dynamics: their files are looked for and read by `sarrus.view`. A relative name starts from the model
    file's folder. "package://name/path" is looked for in `package_dirs`, in the model file's folder and all above it, and in the folders
    of the environment variables ROS_PACKAGE_PATH and AMENT_PREFIX_PATH: in a folder called `name` there, or in one of them if that is
    its own name; above the file, in one that holds the file or a package.xml or model.config. Models that an SDF includes are looked for
    there too, and in the folders of SDF_PATH, GZ_SIM_RESOURCE_PATH and GAZEBO_MODEL_PATH.

    A file may only name files in its own folder, in the package that this lies in (the nearest folder above with a package.xml or
    model.config; of a folder called urdf, xacro or sdf the one around it), in other packages, and in `package_dirs`. Links are followed
    before that is looked at, but for those in the folders of environment variables.

    Examples
    --------
    >>> robot = sarrus.load("panda.urdf")  # doctest: +SKIP
    """
    builder = load_builder(path, floating_base=floating_base, package_dirs=package_dirs, loops=loops, model=model)
    return _built(builder, Path(os.fsdecode(path)).name)


def load_builder(
    path: str | os.PathLike[str], *, floating_base: bool | None = None,
    package_dirs: Iterable[str | os.PathLike[str]] = (), loops: Loops = None, model: str | None = None,
) -> Builder:  # fmt: skip
    """Read a model file into a :class:`~sarrus.Builder`, to be changed before it is built; arguments and errors are those of
    :func:`load`: ModelError, OSError, ModuleNotFoundError.

    Examples
    --------
    >>> import sarrus
    >>> sarrus.mechanisms.double_pendulum().save("arm.json")
    >>> b = sarrus.load_builder("arm.json")
    >>> b.lock("elbow", at=0.5)
    >>> b.build().nv
    1
    """
    path = checked_path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ModelError(f"{path}: cannot read {suffix or 'a file without suffix'}; {', '.join(SUFFIXES)} are read")
    fault = ModelError(f"package_dirs wants a list of folders; got {package_dirs!r}")
    if isinstance(package_dirs, str | bytes | os.PathLike):
        raise fault
    try:
        folders = [os.path.abspath(os.fsdecode(folder)) for folder in package_dirs]
    except TypeError:
        raise fault from None
    text = _expanded(path) if suffix == ".xacro" else read_bytes(path, MOST_BYTES)
    beside = str(path.absolute().parent)
    places: dict[str, Any] = {"beside": beside, "package_dirs": folders}
    return _read(text, SUFFIXES[suffix], path.name, floating_base=floating_base, loops=loops, model=model, **places)


def loads(
    text: str | bytes, *, floating_base: bool | None = None, loops: Loops = None, model: str | None = None
) -> Mechanism:
    """Read a mechanism from the text of a model file; as :func:`load`. Its root element tells the format: robot, mujoco, sdf; or #usda, or
    a brace, sarrus' own. OSError where a file of ``loops=`` cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> import sarrus
    >>> robot = sarrus.loads('''
    ... <robot name="pendulum">
    ...   <link name="support"/>
    ...   <link name="bob">
    ...     <inertial>
    ...       <origin xyz="0 0 -0.5"/> <mass value="2"/>
    ...       <inertia ixx="0" iyy="0" izz="0"/>
    ...     </inertial>
    ...   </link>
    ...   <joint name="pin" type="continuous">
    ...     <parent link="support"/> <child link="bob"/> <axis xyz="0 1 0"/>
    ...   </joint>
    ... </robot>''')
    >>> robot.gravity_forces([np.pi / 2]).round(6)
    array([9.81])
    """
    return _built(_read(text, "", "<string>", floating_base=floating_base, loops=loops, model=model), "<string>")


def _read(
    text: str | bytes, begins: str, source: str, *, floating_base: bool | None = None, loops: Loops = None,
    model: str | None = None, **places: Any,
) -> Builder:  # fmt: skip
    if not begins:
        start = text.lstrip()[:5] if hasattr(text, "lstrip") else ""
        start = start if isinstance(start, str) else start.decode(errors="replace")
        begins = "{" if start[:1] == "{" else start if start == "#usda" else ""
        if not begins:
            from .document import root_tag

            begins = root_tag(text)
    # what begins like nothing that is known is left to one reader, to say what is wrong with it
    reader, keyword = READERS.get(begins, READERS["robot"])
    options = {name: value for name, value in (("loops", loops), ("model", model)) if value is not None}
    if set(options) - {keyword}:
        raise ModelError(f"{source}: {' and '.join(options)} is nothing that this format is asked for")
    read = importlib.import_module(f"{__name__}.{reader}").read
    builder: Builder = read(text, source=source, floating_base=floating_base, **places, **options)
    if reader != "complete":
        from .urdf_loops import close_frames

        close_frames(builder, source)
    return builder


def _built(builder: Builder, source: str) -> Mechanism:
    from .document import check_ties

    specs: list[Any] = [*builder._joints.values(), *builder._constraints.values()]
    check_ties((spec.bodies for spec in specs), source)
    try:
        return builder.build()
    except ModelError as error:  # which names the joint, though not its line
        raise ModelError(f"{source}: {printable(str(error))}") from None


def _expanded(path: Path) -> str:
    """What a xacro file stands for, the arguments of its macros having their defaults."""
    try:
        import xacro
    except ImportError:
        cure = f"pip install xacro, or expand it first: xacro {path.name} > {path.stem}"
        raise ModelError(f"{path}: xacro is a macro language; {cure}") from None
    read_bytes(path, MOST_BYTES)  # an OSError of its own
    try:
        return str(xacro.process_file(str(path)).toxml())
    except Exception as error:  # of the file's own Python too
        cure = f"where it takes arguments, expand it first: xacro {path.name} ARGUMENT:=VALUE > {path.stem}.urdf"
        raise ModelError(f"{path}: xacro fails: {' '.join(str(error).split())[:500]}; {cure}") from error
