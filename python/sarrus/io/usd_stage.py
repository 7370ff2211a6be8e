"""Conversion of USD stages to elements and back; the only module that uses usd-core.

A prim becomes an :class:`~sarrus.io.document.Element` with its pose in the world. The numbers of an element are text, as in all other formats, so
that the reader, the writer and the tables do not depend on usd-core. Instances of a multiple-apply schema are child elements:
"drive:angular:physics:maxForce" is the attribute "physics:maxForce" of ``<drive name="angular">``.

Most numbers of UsdPhysics have 32 bits. If rounding to 32 bits changes a number, the writer adds an attribute "sarrus:…" with 64 bits. The reader
uses this attribute only if its rounded value equals the 32-bit number, because the latter may have been edited. Otherwise a 32-bit number is read as
the shortest decimal that rounds to it: 0.1 instead of 0.10000000149.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from xml.etree import ElementTree as ET

import numpy as np

from .._arrays import Array
from .._files import check_regular, is_within, needed
from ..errors import ModelError
from .document import DEEPEST, LARGEST, MOST, Element, Grammar, Names, Notes
from .formats import text_of

BINARY = (b"PXR-USDC", b"PK\x03\x04")  # first bytes of .usdc and .usdz
TAGS = {f"Physics{kind}Joint": kind.lower() for kind in ("Revolute", "Prismatic", "Spherical", "Fixed", "Distance")}
TAGS["PhysicsJoint"] = "d6"
OTHERS = {"PhysicsScene": "scene", "MjcActuator": "motor", "NewtonActuator": "motor"}
SHAPES = ("Sphere", "Capsule", "Capsule_1", "Cube", "Cylinder", "Cylinder_1", "Plane", "Cone", "Mesh")
# MEASURES: attributes of shapes that are read although no physics schema defines them. LOOKS: attributes that are ignored
MEASURES = frozenset(("radius", "height", "axis", "size"))
LOOKS = frozenset(("visibility", "purpose", "extent", "proxyPrim", "doubleSided", "orientation", "xformOpOrder"))
PHYSICAL = ("phys", "newton", "mjc", "sarrus", "drive", "limit")
# names of attributes in other schemas -> names of the same attributes in the table of sarrus.io.formats
ALIASES = {
    "physxJoint:armature": "newton:armature", "mjc:armature": "newton:armature", "mjc:frictionloss": "newton:friction",
    "physxJoint:maxJointVelocity": "newton:velocityLimit",
}  # fmt: skip
MOST_LAYERS = 1000
LETTERS = ("X", "Y", "Z")  # letters of the axes
INSTANCES = ("drive", "limit")
MEANS_NONE = ("physics:mass", "physics:diagonalInertia")  # attributes whose value zero means "not specified"


@dataclass(eq=False, slots=True)
class Prim(Element):
    """Element with its path, its applied schemas, and its transformation to the world (4, 4), which includes the scale."""

    path: str = ""
    schemas: frozenset[str] = frozenset()
    world: Array = field(default_factory=lambda: np.eye(4))
    prim: Any = None

    def has(self, schema: str) -> bool:
        """Return True if a schema is applied to the prim."""
        return schema in self.schemas

    def note_named(self, message: str) -> None:
        """Add a warning that lists the names of all prims to which it applies."""
        self.note(message, self.attributes["name"])

    def bound_material(self) -> str:
        """Return the path of the physics material; empty if there is none."""
        from pxr import UsdShade

        material, _ = UsdShade.MaterialBindingAPI(self.prim).ComputeBoundMaterial("physics")
        return str(material.GetPath()) if material else ""

    def faces(self) -> tuple[Array, Array, Array]:
        """Return the points (n, 3) of a mesh, in 64 bits if the file has them, the counts of its faces' corners, and their indices."""
        names = ("points", "sarrus:points", "faceVertexCounts", "faceVertexIndices")
        points, exact, counts, indices = (np.asarray(self.prim.GetAttribute(name).Get() or ()) for name in names)
        if not counts.sum() or counts.sum() > len(indices) or indices.min() < 0 or indices.max() >= len(points):
            self.fail("has no faces, or indices of faces out of range")
        same = exact.shape == points.shape and np.array_equal(exact.astype(np.float32), points)
        return np.asarray(exact if same else points, np.float64), counts, indices

    def color(self) -> tuple[float, ...] | None:
        """Return the colour of the surface, if it is uniform."""
        color: Any = self.prim.GetAttribute("primvars:displayColor").Get() or ()
        opacity = self.prim.GetAttribute("primvars:displayOpacity").Get() or ()
        numbers = [*color[0], *opacity[:1]] if len(color) == 1 else []
        return tuple(float(str(np.float32(x))) for x in numbers) or None


def _pxr() -> Any:
    return needed("pxr.Tf", "USD needs usd-core", "usd-core")


def read_stage(text: str | bytes, source: str, beside: str, package_dirs: Iterable[str], grammar: Grammar) -> Prim:
    """Return the root of a stage, whose children are all prims, parents first."""
    Tf = _pxr()
    from pxr import Sdf, Usd, UsdGeom, UsdPhysics

    notes = Notes()
    try:
        if beside:
            layers = _checked_layers(os.path.join(beside, source), [beside, *package_dirs])
            layer = next(iter(layers.values()))
        else:
            if not isinstance(text, str):
                if text.startswith(BINARY):
                    raise ModelError(f"{source}: binary USD can only be read from a file: sarrus.load")
                text = bytes(text).decode()
            if len(text) > LARGEST:
                raise ModelError(f"{source}: has {len(text)} characters; expected at most {LARGEST}")
            layer = Sdf.Layer.CreateAnonymous(".usda")
            layer.ImportFromString(text)
            # any() finds references to other files; references to prims of the same text have an empty file name
            if any(layer.GetCompositionAssetDependencies()):
                fault = "refers to other files, which need its folder"
                raise ModelError(f"{source}: {fault}: read the file with sarrus.load")
            layers = {layer.identifier: layer}
        _Composed(layers, source).check(layer)
        stage = Usd.Stage.Open(layer, None)
    except (Tf.ErrorException, UnicodeDecodeError) as error:
        cause = str(error).split(" : ")[-1].strip()
        raise ModelError(f"{source}: cannot be read as USD: {cause[:300]}") from None
    metre, kilogram = UsdGeom.GetStageMetersPerUnit(stage), UsdPhysics.GetStageKilogramsPerUnit(stage)
    attributes = {"metersPerUnit": text_of(metre), "kilogramsPerUnit": text_of(kilogram)}
    attributes |= {"upAxis": UsdGeom.GetStageUpAxis(stage), "defaultPrim": stage.GetRootLayer().defaultPrim}
    # the root refers to the stage, because its prims are valid only while the stage exists
    root = Prim("stage", attributes, source, "/", None, notes, grammar, prim=stage)
    for fault in stage.GetCompositionErrors():
        root.note(f"a reference of the stage cannot be resolved, and is left out: {str(fault)[:300]}")
    if attributes["upAxis"] not in LETTERS:
        root.fail(f"has an upAxis {attributes['upAxis'][:60]!r}; expected one of {', '.join(LETTERS)}")
    if not UsdGeom.StageHasAuthoredMetersPerUnit(stage):
        root.note("metersPerUnit is missing: lengths are in centimetres, USD's default")
    cache, healed = UsdGeom.XformCache(), [0]
    for prim in Usd.PrimRange(stage.GetPseudoRoot(), Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate)):
        if prim.IsPseudoRoot():
            continue
        if len(root.children) >= MOST or prim.GetPath().pathElementCount > DEEPEST:
            root.fail(f"has more than {MOST} prims, or prims nested deeper than {DEEPEST}")
        root.children.append(_element(prim, root, cache, healed))
    if healed[0] and stage.GetRootLayer().customLayerData.get("creator") != "sarrus":
        root.note("numbers of 32 bits are read as the shortest decimals that round to them")
    return root


def _checked_layers(path: str, folders: list[str]) -> dict[str, Any]:
    """Return name -> layer of a file, first, and of all files that it refers to.

    Raises ModelError if one is not a regular file in these folders.
    """
    from pxr import Ar, Sdf

    layers: dict[str, Any] = {}
    pending = [os.path.abspath(path)]
    while pending:
        name = pending.pop()
        if name in layers:
            continue
        # for a file in a .usdz archive, the archive's name. USD's function splits the name, because file names may contain brackets
        outer = Ar.SplitPackageRelativePathOuter(name)[0] if Ar.IsPackageRelativePath(name) else name
        if layers and not is_within(outer, folders):
            fault = f"refers to {name!r}, outside of the file's folder: package_dirs=[...] allows other folders"
            raise ModelError(f"{Path(path).name}: {fault}")
        try:
            check_regular(outer, LARGEST)
        except FileNotFoundError:
            raise ModelError(f"{Path(path).name}: refers to {name!r}, which does not exist") from None
        layer = Sdf.Layer.FindOrOpen(name)
        if layer is not None and not layer.dirty:  # reload a cached layer, because its file may have changed
            layer.Reload()
        if layer is None:
            fault = f"refers to {name!r}, which cannot be read as USD" if layers else "cannot be read as USD"
            raise ModelError(f"{Path(path).name}: {fault}")
        layers[name] = layer
        pending += [layer.ComputeAbsolutePath(asset) for asset in layer.GetCompositionAssetDependencies() if asset]
    return layers


Site = tuple[str, str]  # layer, and path of a prim in its stack


class _Composed:
    """Count of the prims and sites of a composition, computed before USD composes the layers.

    A site is a layer and a path in it that contribute to a prim. The count protects against attacks: two references at each of thirty levels expand
    one page of text to 10⁹ prims. A composition arc to another prim adds one site to each of that prim's descendants. All variants of a variant set
    count, although USD composes only the selected one.
    """

    def __init__(self, layers: Mapping[str, Any], source: str) -> None:
        self.layers, self.source = {layer.identifier: layer for layer in layers.values()}, source
        self.named = {**self.layers, **layers}
        self.stacks: dict[str, list[Any]] = {}
        self.counted: dict[Site, tuple[float, float]] = {}

    def check(self, root: Any) -> None:
        """Raise ModelError if the composition of a layer is too large."""
        pending: list[Site] = [(root.identifier, "/")]
        begun: dict[Site, tuple[list[Site], list[Site]]] = {}
        while pending:
            site = pending[-1]
            if site in begun:
                pending.pop()
                if site not in self.counted:
                    self.counted[site] = self.count(*begun[site])
                continue
            below, arcs = begun[site] = self.parts(*site)
            pending += [other for other in (*below, *arcs) if other not in begun]
            if len(begun) > 4 * MOST:
                self.refuse()
        if self.counted[root.identifier, "/"][1] > MOST:
            self.refuse()

    def refuse(self) -> NoReturn:
        """Raise ModelError for a composition that is too large."""
        fault = f"its prims are composed of more than {MOST} parts: reduce references to prims with references"
        raise ModelError(f"{self.source}: {fault}")

    def count(self, below: Sequence[Site], arcs: Sequence[Site]) -> tuple[float, float]:
        """Return the numbers of prims and sites of a prim, from the counts of its children and of its arcs' targets.

        Circular references count as zero.
        """
        prims, sites = 1.0, 1.0
        for site, arc in [*((site, False) for site in below), *((site, True) for site in arcs)]:
            prims_at_site, sites_at_site = self.counted.get(site, (0.0, 0.0))
            prims += prims_at_site - arc * (prims_at_site > 0.0)
            sites += sites_at_site + arc * prims_at_site
        return prims, sites

    def stack(self, name: str) -> list[Any]:
        """Return a layer and its sublayers."""
        if name not in self.stacks:
            layers, k = [self.layers[name]], 0
            while k < len(layers):
                paths = [layers[k].ComputeAbsolutePath(path) for path in layers[k].subLayerPaths]
                layers += [self.named[path] for path in paths if path in self.named]
                k += 1
                if len(layers) > MOST_LAYERS:
                    raise ModelError(f"{self.source}: has more than {MOST_LAYERS} sublayers, counted with repetitions")
            self.stacks[name] = layers
        return self.stacks[name]

    def parts(self, name: str, path: str) -> tuple[list[Site], list[Site]]:
        """Return the sites of a prim's children, and the sites that are targets of its composition arcs."""
        below: dict[Site, None] = {}
        arcs: list[Site] = []
        for layer in self.stack(name):
            spec = layer.pseudoRoot if path == "/" else layer.GetPrimAtPath(path)
            if spec is None:
                continue
            specs = [spec]
            for sets in spec.variantSets.values() if path != "/" else ():
                specs += [variant.primSpec for variant in sets.variants.values()]
            for part in specs:
                below |= {(name, str(child.path)): None for child in part.nameChildren}
                if path == "/":
                    continue
                for items in (part.referenceList, part.payloadList):
                    for item in items.GetAppliedItems():
                        where = layer.ComputeAbsolutePath(item.assetPath) if item.assetPath else name
                        if where in self.named:
                            other = self.named[where]
                            target = str(item.primPath) or f"/{other.defaultPrim.lstrip('/')}"
                            arcs.append((other.identifier, target))
                for inherited in (part.inheritPathList, part.specializesList):
                    arcs += [(name, str(target)) for target in inherited.GetAppliedItems()]
        return [*below], arcs


def _element(prim: Any, root: Element, cache: Any, healed: list[int]) -> Prim:
    kind, path = str(prim.GetTypeName()), str(prim.GetPath())
    # the union includes schemas that usd-core does not define, such as Newton's
    schemas = frozenset(map(str, (*prim.GetAppliedSchemas(), *prim.GetPrimTypeInfo().GetAppliedAPISchemas())))
    tag = "joint" if kind in TAGS else "shape" if kind in SHAPES else OTHERS.get(kind, "prim")
    attributes = {"name": str(prim.GetDisplayName() or prim.GetName()), "type": TAGS.get(kind, kind)}
    element = Prim(tag, attributes, root.source, path, root, root.notes, root.grammar)
    element.path, element.schemas, element.prim = path, schemas, prim
    try:
        element.world = np.array(cache.GetLocalToWorldTransform(prim)).T
    # USD raises this error for example if xformOpOrder names an undefined operation
    except _pxr().ErrorException as error:
        element.fail(f"has transformations that USD cannot read: {str(error).split(' : ')[-1].strip()[:100]}")
    parts: dict[tuple[str, str], Element] = {}
    for schema in sorted(schemas):
        api, _, instance = schema.partition(":")
        if instance and (part := api.removeprefix("Physics").removesuffix("API").lower()) in INSTANCES:
            child = Element(part, {"name": instance}, root.source, element.line, element, root.notes, root.grammar)
            parts[part, instance] = child
            element.children.append(child)
    for attribute in prim.GetAuthoredAttributes():
        name = str(attribute.GetName())
        head, _, rest = name.partition(":")
        if name in LOOKS or (head in ("primvars", "xformOp", "ui", "sarrus") and name != "sarrus:frame"):
            continue
        if not (head.startswith(PHYSICAL) or (tag == "joint") or (tag == "shape" and name in MEASURES)):
            continue
        text = _text(attribute, element, healed)
        if text is None:
            continue
        owner: Element = element
        name = ALIASES.get(name, name)
        instance, _, name_in_part = rest.partition(":")
        if head in INSTANCES:
            if (head, instance) not in parts:
                element.note(f"attribute {name!r} is not read: no schema of this name is applied")
                continue
            name, owner = name_in_part, parts[head, instance]
        owner.attributes[name] = text
    for relationship in prim.GetAuthoredRelationships():
        if (name := str(relationship.GetName())).startswith(("physics:", "newton:", "mjc:target")):
            try:
                element.attributes[name] = " ".join(map(str, relationship.GetForwardedTargets()))
            except _pxr().ErrorException:  # an attribute in another layer, or malformed
                element.fail(f"has a relationship {name!r} that USD cannot read")
    return element


def _numbers(value: Any) -> Any:
    """Return the numbers of a USD value, quaternions as (w, x, y, z); None for other values."""
    if hasattr(value, "GetReal"):
        return np.array([value.GetReal(), *value.GetImaginary()])
    try:
        return np.asarray(value) if not isinstance(value, str) else None
    except (TypeError, ValueError):
        return None


def _text(attribute: Any, element: Prim, healed: list[int]) -> str | None:
    """Return an attribute as text; None if it equals the default of its schema."""
    value, name = attribute.Get(), attribute.GetName()
    exact = element.prim.GetAttribute(f"sarrus:{name}")
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    numbers = _numbers(value)
    if numbers is None or numbers.dtype.kind not in "fiu":
        return str(value)
    if exact and exact.HasAuthoredValue():
        double = np.asarray(_numbers(exact.Get()), dtype=np.float64)
        if double.shape == numbers.shape and np.array_equal(double.astype(np.float32), numbers.astype(np.float32)):
            return text_of(double)
        element.note(f"sarrus:{name} is not read: {name} has changed since it was written")
    definition = element.prim.GetPrimDefinition().GetAttributeDefinition(name)
    if definition and definition.GetFallbackValue() == value:
        return None
    if str(attribute.GetTypeName()).startswith(("double", "quatd", "int")):
        return text_of(numbers)
    numbers = numbers.astype(np.float32)
    nice = np.array([float(str(x)) for x in numbers.ravel()])
    healed[0] += int((nice != numbers.ravel()).any())
    return text_of(nice)


# ---- writing ---------------------------------------------------------------------------------------------------------


def write_stage(root: ET.Element) -> str:
    """Return the text of a stage; children of an element are prims below it, or instances of schemas.

    Attributes are "type" and "name" of the prim, "schemas" to apply, "pose" (position [m] and quaternion), "scale", and those of USD.
    """
    _pxr()
    from pxr import Sdf, Tf, Usd, UsdGeom, UsdPhysics

    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageUpAxis(stage, "Z")
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdPhysics.SetStageKilogramsPerUnit(stage, 1.0)
    stage.GetRootLayer().customLayerData = {"creator": "sarrus"}
    paths: dict[str, str] = {}  # id of an element -> path
    links: list[tuple[Any, str, str]] = []

    def define(element: ET.Element, above: str, used: Names) -> None:
        base = Tf.MakeValidIdentifier(element.get("name", "prim"))
        name = used.new(base)
        path = f"{above}/{name}"
        paths[element.get("id", path)] = path
        prim = stage.DefinePrim(path, element.get("type", "Xform"))
        if not above:
            stage.SetDefaultPrim(prim)
        if element.get("name") not in (None, name) or base != name:
            prim.SetDisplayName(element.get("name"))
        for schema in element.get("schemas", "").split():
            prim.AddAppliedSchema(schema)
        _place(UsdGeom.Xformable(prim), element)
        below = Names()
        for child in element:
            if child.tag in INSTANCES:
                prim.AddAppliedSchema(f"Physics{child.tag.title()}API:{child.get('name')}")
                for key, text in child.attrib.items():
                    if key != "name":
                        _set(prim, f"{child.tag}:{child.get('name')}:{key}", text)
            else:
                define(child, path, below)
        for key, text in element.attrib.items():
            if key.startswith(("physics:body", "material:", "newton:mimicJoint")):
                links.append((prim, key, text))
            elif key not in ("type", "name", "id", "schemas", "pose", "scale"):
                _set(prim, key, text)

    for child in root:
        define(child, "", Names())
    for prim, key, target in links:
        (prim.GetRelationship(key) or prim.CreateRelationship(key, False)).SetTargets([Sdf.Path(paths[target])])
    return str(stage.GetRootLayer().ExportToString())


def _place(xform: Any, element: ET.Element) -> None:
    from pxr import Gf, UsdGeom

    if pose := element.get("pose"):
        x, y, z, a, b, c, w = map(float, pose.split())
        xform.AddTranslateOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(x, y, z))
        if (a, b, c) != (0.0, 0.0, 0.0):
            xform.AddOrientOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Quatd(w, a, b, c))
    if scale := element.get("scale"):
        xform.AddScaleOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*map(float, scale.split())))


def _set(prim: Any, name: str, text: str) -> None:
    """Set an attribute in the type of its schema.

    If rounding to 32 bits changes the value, or if the value would mean "not specified", an additional attribute with 64 bits is set.
    """
    from pxr import Gf, Sdf

    types = Sdf.ValueTypeNames
    attribute = prim.GetAttribute(name)
    if not attribute:
        number = types.Float if name.startswith("newton:") else types.Double
        custom = types.Bool if text in ("true", "false") else number
        attribute = prim.CreateAttribute(name, custom, custom=name.startswith("sarrus:"))
    kind = str(attribute.GetTypeName())
    if kind in ("token", "bool"):
        attribute.Set(text if kind == "token" else text == "true")
        return
    values = list(map(float, text.split()))
    if kind.endswith("[]"):
        triples = list(zip(*[iter(values)] * 3, strict=True)) if "3" in kind else []
        attribute.Set([Gf.Vec3f(*x) for x in triples] or list(map(int if kind == "int[]" else float, values)))
        if name == "points":
            exact = prim.CreateAttribute("sarrus:points", types.Double3Array, custom=True)
            exact.Set([Gf.Vec3d(*x) for x in triples])
        return
    kinds = {
        1: (float, float, types.Double),
        3: (Gf.Vec3f, Gf.Vec3d, types.Double3),
        4: (Gf.Quatf, Gf.Quatd, types.Quatd),
    }
    short, double, wide = kinds[len(values)]
    if kind == "double":
        attribute.Set(values[0])
        return
    attribute.Set(short(*values))
    same = [float(str(x)) for x in np.asarray(values, np.float32)] == values
    if not same or (name in MEANS_NONE and not any(values)):
        prim.CreateAttribute(f"sarrus:{name}", wide, custom=True).Set(double(*values))
