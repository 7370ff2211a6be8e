"""Readers and writers of model files.

`load`, `load_builder` and `loads` select a reader by the suffix or by the beginning of the document. Each reader is one module and returns a
`sarrus.Builder`, so that a model can be changed before it is built. `save` selects a writer by the suffix.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._arrays import checked_path
from .._deferred import attributes
from .._files import read_bytes
from ..building.builder import Builder
from ..errors import ModelError, printable
from ..mechanism import Mechanism, checked_mechanism

if TYPE_CHECKING:
    from . import complete as complete
    from . import mjcf as mjcf
    from . import sdf as sdf
    from . import urdf as urdf
    from . import usd as usd
    from .mujoco import from_mujoco
    from .pinocchio import from_pinocchio, to_pinocchio
    from .urdf_loops import Loops

__all__ = ["from_mujoco", "from_pinocchio", "load", "load_builder", "loads", "save", "to_pinocchio"]


def __dir__() -> list[str]:
    return sorted(__all__)


__getattr__ = attributes(
    __name__,
    {
        "mujoco": ("from_mujoco",),
        "pinocchio": ("from_pinocchio", "to_pinocchio"),
        **{module: (module,) for module in ("complete", "mjcf", "sdf", "urdf", "usd")},
    },
)

# beginning of a document (a brace, #usda, or the name of the root element) -> module of its reader, and the keyword of `load` for this reader
READERS = {
    "robot": ("urdf", "loops"),
    "mujoco": ("mjcf", ""),
    "sdf": ("sdf", "model"),
    "#usda": ("usd", ""),
    "{": ("complete", ""),
}
# suffix -> beginning of the document; empty if the root element of the document selects the reader
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

# suffix -> name of the module that writes the format; it is imported when needed
WRITERS = {
    ".json": "complete",
    ".urdf": "write_urdf",
    ".xml": "write_mjcf",
    ".sdf": "write_sdf",
    ".usda": "write_usd",
    ".usd": "write_usd",
}

MOST_BYTES = 2**30  # largest size of a file of any format


def load(
    path: str | os.PathLike[str], *, floating_base: bool | None = None,
    package_dirs: Iterable[str | os.PathLike[str]] = (), loops: Loops = None, model: str | None = None,
    arguments: Mapping[str, object] | None = None,
) -> Mechanism:  # fmt: skip
    """Read a mechanism from a model file.

    Each format has a module with a table of the elements that are read, and of their counterparts in the mechanism: :mod:`sarrus.io.urdf`,
    :mod:`sarrus.io.mjcf`, :mod:`sarrus.io.sdf`,
    :mod:`sarrus.io.usd`, and :mod:`sarrus.io.complete` for sarrus' JSON.

    Parameters
    ----------
    path : file name. The suffix selects the format: `.urdf`; `.mjcf`; `.sdf`, `.world`; `.json`; `.usd`, `.usda`, `.usdc`, `.usdz` with ``pip install
        usd-core``; `.xml`, whose root element decides between URDF, MJCF and SDF; `.xacro` with ``pip install xacro``, which executes the file's
        macros
    floating_base : True if the root link floats (`sarrus.Free`), False if it is fixed to the ground. The default depends on the format: the root of a
        URDF is fixed; in an SDF, a link floats if no joint connects it to the world
    package_dirs : folders in which the packages of "package://" and "model://" names are searched; a folder may also be a package itself. The model
        file may include files and meshes from these folders
    loops : description of a URDF's loops in a separate file (sidecar): its name (`robot.yaml`, needs ``pip install pyyaml``), or a dict with the same
        keys, see :class:`sarrus.io.urdf_loops.Sidecar`
    model : name of the model to read, for an SDF with several models
    arguments : values of the arguments of a xacro file by their names, numbers or texts; the file has defaults for others

    Returns
    -------
    Mechanism; `robot.warnings` lists the entries of the file that were not used

    Raises
    ------
    ModelError
        The file is not a valid model; the message has file, line and element.
    OSError
        The file cannot be read.
    ModuleNotFoundError
        A package that the format needs is not installed.

    Notes
    -----
    The meshes of visuals are not part of the dynamics; `sarrus.view` searches and reads their files. Relative file names are relative to the model
    file's folder.

    "package://name/path" is searched in `package_dirs`, in the model file's folder and all folders above it, and in the folders of the
    environment variables ROS_PACKAGE_PATH and AMENT_PREFIX_PATH. The package is the first folder called `name` among these folders and their
    subfolders of the first level. A folder that is not in `package_dirs` or the environment variables is accepted only if it contains the model file,
    a package.xml or a model.config. Included models of an SDF are searched in the same folders, and in the folders of SDF_PATH, GZ_SIM_RESOURCE_PATH
    and GAZEBO_MODEL_PATH.

    A model file may only refer to files in its own folder, in its package, in other packages, and in `package_dirs`. Its package is the nearest
    folder above it that contains a package.xml or a model.config. Without such a folder, it is the parent of a folder called urdf, xacro or sdf that
    contains the file. Symbolic links are resolved before this check, except in the folders of environment variables.

    Examples
    --------
    >>> robot = sarrus.load("panda.urdf")  # doctest: +SKIP
    """
    options: dict[str, Any] = {"package_dirs": package_dirs, "loops": loops, "model": model, "arguments": arguments}
    builder = load_builder(path, floating_base=floating_base, **options)
    return _built(builder, Path(os.fsdecode(path)).name)


def load_builder(
    path: str | os.PathLike[str], *, floating_base: bool | None = None,
    package_dirs: Iterable[str | os.PathLike[str]] = (), loops: Loops = None, model: str | None = None,
    arguments: Mapping[str, object] | None = None,
) -> Builder:  # fmt: skip
    """Return a :class:`~sarrus.Builder` of a model file, so that the model can be changed before it is built.

    Parameters
    ----------
    path, floating_base, package_dirs, loops, model, arguments : as for :func:`load`, whose errors (ModelError, OSError, ModuleNotFoundError) it raises, too

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
    suffix = _checked_suffix(path, "read", SUFFIXES)
    fault = ModelError(f"package_dirs: expected a list of folders; got {package_dirs!r}")
    if isinstance(package_dirs, str | bytes | os.PathLike):
        raise fault
    try:
        folders = [os.path.abspath(os.fsdecode(folder)) for folder in package_dirs]
    except TypeError:
        raise fault from None
    if arguments is not None and suffix != ".xacro":
        raise ModelError(f"{path}: arguments does not apply to this format; arguments= is for .xacro")
    text = _expanded(path, arguments) if suffix == ".xacro" else read_bytes(path, MOST_BYTES)
    beside = str(path.absolute().parent)
    places: dict[str, Any] = {"beside": beside, "package_dirs": folders}
    return _read(text, SUFFIXES[suffix], path.name, floating_base=floating_base, loops=loops, model=model, **places)


def loads(
    text: str | bytes, *, floating_base: bool | None = None, loops: Loops = None, model: str | None = None
) -> Mechanism:
    """Read a mechanism from the text of a model file.

    The beginning of the text selects the format: the root element of XML (robot, mujoco or sdf), "#usda" for USD, or a brace for sarrus' JSON.

    Parameters
    ----------
    text : contents of the file
    floating_base, loops, model : as for :func:`load`, whose errors it raises, too; OSError if the file in ``loops=`` cannot be read

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


def save(robot: Mechanism, path: str | os.PathLike[str], *, lossy: bool = False) -> list[Path]:
    """Write a mechanism to a file as :meth:`sarrus.Mechanism.save` does, and return the paths of the written files.

    Parameters
    ----------
    path : name of the file; its suffix selects the format, as for :meth:`sarrus.Mechanism.save`
    lossy : if True, parts that the format cannot represent are omitted with a warning, even if the motion changes
    """
    checked_mechanism(robot, "robot")
    file = checked_path(path)
    writer = importlib.import_module(f".{WRITERS[_checked_suffix(file, 'write', WRITERS)]}", __package__)
    files: list[Path] = writer.save(robot, file, lossy=lossy)
    return files


def _checked_suffix(path: Path, verb: str, suffixes: Iterable[str]) -> str:
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        kind = suffix or "a file without suffix"
        raise ModelError(f"{path}: cannot {verb} {kind}; expected one of {', '.join(suffixes)}")
    return suffix


def _read(
    text: str | bytes, begins: str, source: str, *, floating_base: bool | None = None, loops: Loops = None,
    model: str | None = None, **places: Any,
) -> Builder:  # fmt: skip
    if not begins:
        if not isinstance(text, str | bytes):
            raise TypeError(f"text: expected the document, as str or bytes; got {text!r}. sarrus.load reads files")
        start = text.lstrip()[:5]
        start = start if isinstance(start, str) else start.decode(errors="replace")
        begins = "{" if start[:1] == "{" else start if start == "#usda" else ""
        if not begins:
            from .document import root_tag

            begins = root_tag(text)
    # if the beginning of the text is unknown, the URDF reader raises the error
    reader, keyword = READERS.get(begins, READERS["robot"])
    options = {name: value for name, value in (("loops", loops), ("model", model)) if value is not None}
    if set(options) - {keyword}:
        fault = f"{' and '.join(options)} does not apply to this format"
        raise ModelError(f"{source}: {fault}; loops= is for URDF, model= for SDF")
    read = importlib.import_module(f"{__name__}.{reader}").read
    builder: Builder = read(text, source=source, floating_base=floating_base, **places, **options)
    if reader != "complete":
        from .urdf_loops import close_frames

        close_frames(builder, source)
    return builder


def _built(builder: Builder, source: str) -> Mechanism:
    from .document import check_pairs

    specs: list[Any] = [*builder._joints.values(), *builder._constraints.values()]
    check_pairs((spec.bodies for spec in specs), source)
    try:
        return builder.build()
    except ModelError as error:  # its message names the joint, but not the file
        raise ModelError(f"{source}: {printable(str(error))}") from None


class _Arguments(dict[str, str]):
    """Arguments of a xacro file; `used` has the names that the file reads."""

    def __init__(self, values: Mapping[str, object]) -> None:
        super().__init__({name: str(value) for name, value in values.items()})
        self.used = set[object]()

    def __contains__(self, name: object) -> bool:
        self.used.add(name)
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.used.add(name)
        return super().__getitem__(name)


def _expanded(path: Path, arguments: Mapping[str, object] | None) -> str:
    """Return the URDF that a xacro file expands to."""
    fault = ModelError(f"arguments: expected a dict of names and values; got {arguments!r}")
    try:
        values = _Arguments(dict(arguments or {}))
    except (TypeError, ValueError):
        raise fault from None
    if not all(isinstance(name, str) for name in values):
        raise fault
    expanded = f"{path.stem.removesuffix('.urdf')}.urdf"
    try:
        import xacro
    except ImportError:
        cure = f"pip install xacro, or expand it first: xacro {path.name} > {expanded}"
        raise ModelError(f"{path}: xacro is a macro language; {cure}") from None
    read_bytes(path, MOST_BYTES)  # raises OSError for an unreadable file; xacro would raise another error
    try:
        text = str(xacro.process_file(str(path), mappings=values).toxml())
    except Exception as error:  # the file may contain Python code, which can raise any error
        cure = "values of the file's arguments: arguments={'name': value}"
        raise ModelError(f"{path}: xacro fails: {' '.join(str(error).split())[:500]}; {cure}") from error
    if unknown := sorted(set(dict(arguments or ())) - values.used):
        raise ModelError(f"{path}: arguments: the file has no argument {', '.join(map(repr, unknown))}")
    return text
