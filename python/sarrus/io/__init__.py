"""Model files in, mechanisms out, and back.

`load`, `load_builder` and `loads` choose a reader by suffix or by the beginning of the document. Each reader is one module and gives a
`sarrus.Builder`, so that a model can be added to before it is built. `save` chooses a writer by suffix.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ModelError
from . import complete, urdf
from .saving import save

if TYPE_CHECKING:
    from ..building.builder import Builder
    from ..mechanism import Mechanism

__all__ = ["load", "load_builder", "loads", "save"]

BY_SUFFIX: dict[str, Callable[..., Builder]] = {".urdf": urdf.read, ".json": complete.read}
READ_TODAY = f"{', '.join(BY_SUFFIX)} are read today"


def load(
    path: str | os.PathLike[str], *, floating_base: bool = False, package_dirs: Iterable[str | os.PathLike[str]] = ()
) -> Mechanism:
    """Read a mechanism from a model file. What becomes of each part of it: :mod:`sarrus.io.urdf`.

    Parameters
    ----------
    path : file name; the suffix tells the format (`.urdf`)
    floating_base : whether the root link floats (`sarrus.Free`) instead of being fixed to the ground
    package_dirs : folders that hold the packages of "package://" names, or are one

    Returns
    -------
    Mechanism; what was met in the file and not used is listed in `robot.warnings`

    Raises
    ------
    ModelError
        The file is no model, or one that no mechanism can follow; the message gives file, line and element.
    OSError
        The file cannot be read.

    Notes
    -----
    Meshes are no part of the dynamics: their files are looked for and read by `sarrus.view`. A relative name starts from the model
    file's folder. "package://name/path" is looked for in `package_dirs`, in the model file's folder and all above it, and in the folders
    of the environment variables ROS_PACKAGE_PATH and AMENT_PREFIX_PATH: in a folder called `name` there, or in one of them if that is
    its own name.

    Examples
    --------
    >>> robot = sarrus.load("panda.urdf")  # doctest: +SKIP
    """
    return _built(
        load_builder(path, floating_base=floating_base, package_dirs=package_dirs), Path(os.fsdecode(path)).name
    )


def load_builder(path: str | os.PathLike[str], **options: Any) -> Builder:
    """Read a model file into a :class:`~sarrus.Builder`, to be changed before it is built; the arguments are those of :func:`load`.

    Examples
    --------
    >>> import sarrus
    >>> sarrus.mechanisms.double_pendulum().save("arm.json")
    >>> b = sarrus.load_builder("arm.json")
    >>> b.lock("elbow", at=0.5)
    >>> b.build().nv
    1
    """
    return _read(path, **options)


def _read(
    path: str | os.PathLike[str], *, floating_base: bool = False, package_dirs: Iterable[str | os.PathLike[str]] = ()
) -> Builder:
    path = Path(os.fsdecode(path))
    suffix = path.suffix.lower()
    if suffix == ".xacro":
        raise ModelError(f"{path}: xacro is a macro language; expand it first: xacro {path.name} > {path.stem}")
    if suffix not in BY_SUFFIX:
        raise ModelError(f"{path}: cannot read {suffix or 'a file without suffix'}; {READ_TODAY}")
    if "\0" in str(path):
        raise ModelError(f"{str(path)!r} is no name of a file: it holds a null character")
    wanted = ModelError(f"package_dirs wants a list of folders; got {package_dirs!r}")
    if isinstance(package_dirs, str | bytes | os.PathLike):
        raise wanted
    try:
        folders = [os.path.abspath(os.fsdecode(folder)) for folder in package_dirs]
    except TypeError:
        raise wanted from None
    beside = str(path.absolute().parent)
    read, text = BY_SUFFIX[suffix], path.read_bytes()
    return read(text, source=path.name, floating_base=floating_base, beside=beside, package_dirs=folders)


def loads(text: str | bytes, *, floating_base: bool = False) -> Mechanism:
    """Read a mechanism from the text of a model file; as :func:`load`. The name of its root element tells the format (`<robot>`: URDF),
    and a brace sarrus' own form.

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
    brace = "{" if isinstance(text, str) else b"{"
    own_form = isinstance(text, str | bytes) and text.lstrip()[:1] == brace
    read = complete.read if own_form else urdf.read
    return _built(read(text, floating_base=floating_base), "<string>")


def _built(builder: Builder, source: str) -> Mechanism:
    try:
        return builder.build()
    except ModelError as error:  # which names the joint, though not its line
        raise ModelError(f"{source}: {error}") from None
