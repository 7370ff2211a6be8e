"""Stages of USD as elements, and back: the one place that knows usd-core.

A prim becomes an :class:`~sarrus.io.document.Element` that also knows where it stands in the world, and whose numbers are text, as those of
every other format: the reader, the writer and the tables see no USD. Instances of a multiple-apply schema are elements in it: of
"drive:angular:physics:maxForce" the element is ``<drive name="angular">`` and the attribute "physics:maxForce".

Most numbers of UsdPhysics have 32 bits. The writer puts beside one that loses by this an attribute "sarrus:…" with all 64, which is read
for as long as the short number still is the one it stands for. Without it a number of 32 bits is taken as the shortest decimal that it
rounds: 0.1 and not 0.10000000149.
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
from .document import DEEPEST, LARGEST, MOST, Element, Grammar, Notes
from .table import text_of

BINARY = (b"PXR-USDC", b"PK\x03\x04")  # how .usdc and .usdz begin
TAGS = {f"Physics{kind}Joint": kind.lower() for kind in ("Revolute", "Prismatic", "Spherical", "Fixed", "Distance")}
TAGS["PhysicsJoint"] = "d6"
SHAPES = ("Sphere", "Capsule", "Capsule_1", "Cube", "Cylinder", "Cylinder_1", "Plane", "Cone", "Mesh")
# of shapes, what is no physics and still theirs; of joints, what is no number of theirs
MEASURES = frozenset(("radius", "height", "axis", "size"))
LOOKS = frozenset(("visibility", "purpose", "extent", "proxyPrim", "doubleSided", "orientation", "xformOpOrder"))
PHYSICAL = ("phys", "newton", "mjc", "sarrus", "drive", "limit")
# names that others have for what the tables know
ALIASES = {
    "physxJoint:armature": "mjc:armature", "newton:armature": "mjc:armature", "newton:friction": "mjc:frictionloss",
}  # fmt: skip
MOST_LAYERS = 1000
LETTERS = ("X", "Y", "Z")  # of axes
INSTANCES = ("drive", "limit")
MEANS_NONE = ("physics:mass", "physics:diagonalInertia")  # whose zeros are no numbers


@dataclass(eq=False, slots=True)
class Prim(Element):
    """An element with its path, the schemas that are applied to it, and its place: 4 x 4, with the scale of what is in it."""

    path: str = ""
    schemas: frozenset[str] = frozenset()
    world: Array = field(default_factory=lambda: np.eye(4))
    prim: Any = None

    def has(self, schema: str) -> bool:
        return schema in self.schemas

    def bound_material(self) -> str:
        """The path of the material that physics is to take; empty where there is none."""
        from pxr import UsdShade

        material, _ = UsdShade.MaterialBindingAPI(self.prim).ComputeBoundMaterial("physics")
        return str(material.GetPath()) if material else ""

    def faces(self) -> tuple[Array, Array, Array]:
        """Of a mesh its points (n, 3), with all their digits where these are beside them, how many corners its faces have, and which."""
        names = ("points", "sarrus:points", "faceVertexCounts", "faceVertexIndices")
        points, exact, counts, indices = (np.asarray(self.prim.GetAttribute(name).Get() or ()) for name in names)
        if not counts.sum() or counts.sum() > len(indices) or indices.min() < 0 or indices.max() >= len(points):
            self.fail("has no faces, or some of points that are not there")
        same = exact.shape == points.shape and np.array_equal(exact.astype(np.float32), points)
        return np.asarray(exact if same else points, np.float64), counts, indices

    def color(self) -> tuple[float, ...] | None:
        """Of its surface, if it is one everywhere."""
        color: Any = self.prim.GetAttribute("primvars:displayColor").Get() or ()
        opacity = self.prim.GetAttribute("primvars:displayOpacity").Get() or ()
        numbers = [*color[0], *opacity[:1]] if len(color) == 1 else []
        return tuple(float(str(np.float32(x))) for x in numbers) or None


def _pxr() -> Any:
    return needed("pxr.Tf", "USD takes usd-core", "usd-core")


def read_stage(text: str | bytes, source: str, beside: str, package_dirs: Iterable[str], known: Grammar) -> Prim:
    """The root, whose attributes are those of the stage, and in it all prims, one after the other, parents first."""
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
                    raise ModelError(f"{source}: binary USD is read from files: sarrus.load")
                text = bytes(text).decode()
            if len(text) > LARGEST:
                raise ModelError(f"{source}: has {len(text)} letters; at most {LARGEST} of a model are read")
            layer = Sdf.Layer.CreateAnonymous(".usda")
            layer.ImportFromString(text)
            if any(layer.GetCompositionAssetDependencies()):  # those within the text have an empty name
                raise ModelError(f"{source}: text that names other files has no folder to look in: sarrus.load")
            layers = {layer.identifier: layer}
        _Composed(layers, source).check(layer)
        stage = Usd.Stage.Open(layer, None)
    except (Tf.ErrorException, UnicodeDecodeError) as error:
        why = str(error).split(" : ")[-1].strip()
        raise ModelError(f"{source}: no USD that can be read: {why[:300]}") from None
    metre, kilogram = UsdGeom.GetStageMetersPerUnit(stage), UsdPhysics.GetStageKilogramsPerUnit(stage)
    attributes = {"metersPerUnit": text_of(_nice(metre)), "kilogramsPerUnit": text_of(_nice(kilogram))}
    attributes |= {"upAxis": UsdGeom.GetStageUpAxis(stage), "defaultPrim": stage.GetRootLayer().defaultPrim}
    # the stage lives as long as its prims are asked
    root = Prim("stage", attributes, source, "/", None, notes, known, prim=stage)
    for fault in stage.GetCompositionErrors():
        root.note(f"something that the stage names is not there, and left out: {str(fault)[:300]}")
    if attributes["upAxis"] not in LETTERS:
        root.fail(f"has an upAxis {attributes['upAxis'][:60]!r}; known are {', '.join(LETTERS)}")
    if not UsdGeom.StageHasAuthoredMetersPerUnit(stage):
        root.note("metersPerUnit is not told: by what USD says they are centimetres")
    cache, healed = UsdGeom.XformCache(), [0]
    for prim in Usd.PrimRange(stage.GetPseudoRoot(), Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate)):
        if prim.IsPseudoRoot():
            continue
        if len(root.children) >= MOST or prim.GetPath().pathElementCount > DEEPEST:
            root.fail(f"has more than {MOST} prims, or some that are nested deeper than {DEEPEST}")
        root.children.append(_element(prim, root, cache, healed))
    if healed[0] and stage.GetRootLayer().customLayerData.get("creator") != "sarrus":
        root.note("numbers of 32 bits are taken as the shortest decimals that they round")
    return root


def _checked_layers(path: str, folders: list[str]) -> dict[str, Any]:
    """The layers of a file, its own first, and of all that it names, wherever in it, once they are regular files in these folders."""
    from pxr import Ar, Sdf

    layers: dict[str, Any] = {}
    pending = [os.path.abspath(path)]
    while pending:
        name = pending.pop()
        if name in layers:
            continue
        # of a file in a .usdz the package, and by USD's own rule, for names of files may hold brackets
        outer = Ar.SplitPackageRelativePathOuter(name)[0] if Ar.IsPackageRelativePath(name) else name
        if layers and not is_within(outer, folders):
            raise ModelError(f"{Path(path).name}: names {name!r}, outside of the file's folder: give package_dirs=")
        try:
            check_regular(outer, LARGEST)
        except FileNotFoundError:
            raise ModelError(f"{Path(path).name}: names {name!r}, which is not there") from None
        layer = Sdf.Layer.FindOrOpen(name)
        if layer is not None and not layer.dirty:  # which somebody keeps, and its file may be another since
            layer.Reload()
        if layer is None:
            what = f"names {name!r}, which is no USD" if layers else "no USD"
            raise ModelError(f"{Path(path).name}: {what} that can be read")
        layers[name] = layer
        pending += [layer.ComputeAbsolutePath(asset) for asset in layer.GetCompositionAssetDependencies() if asset]
    return layers


Site = tuple[str, str]  # the layer whose stack it is of, and the path of a prim there


class _Composed:
    """How much there is to compose of layers, by their names, counted before USD does it.

    What is referred to twice at each of thirty levels is a thousand million prims, from a page of text. Counted are prims, and of each the places
    that it is composed of, of which an arc to another prim adds one to all that is below; of variants all, one of which is chosen.
    """

    def __init__(self, layers: Mapping[str, Any], source: str) -> None:
        self.layers, self.source = {layer.identifier: layer for layer in layers.values()}, source
        self.named = {**self.layers, **layers}
        self.stacks: dict[str, list[Any]] = {}
        self.counted: dict[Site, tuple[float, float]] = {}

    def check(self, root: Any) -> None:
        """ModelError where it is more than is read."""
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
        what = f"its prims are composed of one another more than {MOST} times over"
        raise ModelError(f"{self.source}: {what}: what refers to others is referred to too often")

    def count(self, below: Sequence[Site], arcs: Sequence[Site]) -> tuple[float, float]:
        """Prims, and places that they are composed of; of what refers to itself nothing is composed."""
        prims, places = 1.0, 1.0
        for site, arc in [*((site, False) for site in below), *((site, True) for site in arcs)]:
            there, of_them = self.counted.get(site, (0.0, 0.0))
            prims, places = prims + there - arc * (there > 0.0), places + of_them + arc * there
        return prims, places

    def stack(self, name: str) -> list[Any]:
        """A layer and those below it."""
        if name not in self.stacks:
            layers, k = [self.layers[name]], 0
            while k < len(layers):
                paths = [layers[k].ComputeAbsolutePath(path) for path in layers[k].subLayerPaths]
                layers += [self.named[path] for path in paths if path in self.named]
                k += 1
                if len(layers) > MOST_LAYERS:
                    raise ModelError(
                        f"{self.source}: has more than {MOST_LAYERS} sublayers, each as often as it is named"
                    )
            self.stacks[name] = layers
        return self.stacks[name]

    def parts(self, name: str, path: str) -> tuple[list[Site], list[Site]]:
        """Prims below one, and prims that arcs from it lead to."""
        below: dict[Site, None] = {}
        arcs: list[Site] = []
        for layer in self.stack(name):
            spec = layer.pseudoRoot if path == "/" else layer.GetPrimAtPath(path)
            if spec is None:
                continue
            specs = [spec]
            for sets in spec.variantSets.values() if path != "/" else ():
                specs += [variant.primSpec for variant in sets.variants.values()]
            for one in specs:
                below |= {(name, str(child.path)): None for child in one.nameChildren}
                if path == "/":
                    continue
                for items in (one.referenceList, one.payloadList):
                    for item in items.GetAppliedItems():
                        where = layer.ComputeAbsolutePath(item.assetPath) if item.assetPath else name
                        if where in self.named:
                            other = self.named[where]
                            target = str(item.primPath) or f"/{other.defaultPrim.lstrip('/')}"
                            arcs.append((other.identifier, target))
                for inherited in (one.inheritPathList, one.specializesList):
                    arcs += [(name, str(target)) for target in inherited.GetAppliedItems()]
        return [*below], arcs


def _element(prim: Any, root: Element, cache: Any, healed: list[int]) -> Prim:
    kind, path = str(prim.GetTypeName()), str(prim.GetPath())
    # of those that usd-core does not know too, such as Newton's
    schemas = frozenset(map(str, (*prim.GetAppliedSchemas(), *prim.GetPrimTypeInfo().GetAppliedAPISchemas())))
    tag = "joint" if kind in TAGS else "scene" if kind == "PhysicsScene" else "shape" if kind in SHAPES else "prim"
    attributes = {"name": str(prim.GetDisplayName() or prim.GetName()), "type": TAGS.get(kind, kind)}
    element = Prim(tag, attributes, root.source, path, root, root.notes, root.known)
    element.path, element.schemas, element.prim = path, schemas, prim
    try:
        element.world = np.array(cache.GetLocalToWorldTransform(prim)).T
    except _pxr().ErrorException as error:  # an order of transformations that names none
        element.fail(f"is placed by transformations that USD cannot read: {str(error).split(' : ')[-1].strip()[:100]}")
    parts: dict[tuple[str, str], Element] = {}
    for schema in sorted(schemas):
        api, _, instance = schema.partition(":")
        if instance and (part := api.removeprefix("Physics").removesuffix("API").lower()) in INSTANCES:
            child = Element(part, {"name": instance}, root.source, element.line, element, root.notes, root.known)
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
        instance, _, of_part = rest.partition(":")
        if head in INSTANCES:
            if (head, instance) not in parts:
                element.note(f"attribute {name!r} is not read: no schema of that name is applied")
                continue
            name, owner = of_part, parts[head, instance]
        owner.attributes[name] = text
    for relationship in prim.GetAuthoredRelationships():
        if (name := str(relationship.GetName())).startswith(("physics:", "newton:")):
            try:
                element.attributes[name] = " ".join(map(str, relationship.GetForwardedTargets()))
            except _pxr().ErrorException:  # what is an attribute in another layer, or malformed
                element.fail(f"has a relationship {name!r} that USD cannot read")
    return element


def _nice(value: Any) -> Any:
    """A double for each number: of 32 bits the shortest decimal."""
    return np.array([float(str(x)) for x in np.ravel(np.asarray(value, np.float32))]) if np.ndim(value) else value


def _numbers(value: Any) -> Any:
    """The numbers of a value of USD, quaternions with the real part first; None where it is none."""
    if hasattr(value, "GetReal"):
        return np.array([value.GetReal(), *value.GetImaginary()])
    try:
        return np.asarray(value) if not isinstance(value, str) else None
    except (TypeError, ValueError):
        return None


def _text(attribute: Any, element: Prim, healed: list[int]) -> str | None:
    """What an attribute says; None where that is what it says anyway."""
    value = attribute.Get()
    exact = element.prim.GetAttribute(f"sarrus:{attribute.GetName()}")
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
        element.note(f"sarrus:{attribute.GetName()} is not read: the number that it stands for was changed since")
    definition = element.prim.GetPrimDefinition().GetAttributeDefinition(attribute.GetName())
    if definition and definition.GetFallbackValue() == value:
        return None
    if str(attribute.GetTypeName()) in ("double", "double3", "quatd", "int"):
        return text_of(numbers)
    numbers = numbers.astype(np.float32)
    nice = np.array([float(str(x)) for x in numbers.ravel()])
    healed[0] += int((nice != numbers.ravel()).any())
    return text_of(nice)


# ---- writing ---------------------------------------------------------------------------------------------------------


def write_stage(root: ET.Element) -> str:
    """The text of a stage: its element's children are prims, and theirs below them, or instances of schemas.

    Attributes: "type" and "name" of the prim, "schemas" that are applied, "pose", position and quaternion, and "scale"; and those of USD.
    """
    _pxr()
    from pxr import Sdf, Tf, Usd, UsdGeom, UsdPhysics

    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageUpAxis(stage, "Z")
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdPhysics.SetStageKilogramsPerUnit(stage, 1.0)
    stage.GetRootLayer().customLayerData = {"creator": "sarrus"}
    paths: dict[str, str] = {}  # of elements, by their ids
    links: list[tuple[Any, str, str]] = []

    def define(element: ET.Element, above: str, taken: set[str]) -> None:
        name = base = Tf.MakeValidIdentifier(element.get("name", "prim"))
        while name in taken:
            name += "_"
        taken.add(name)
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
        below = set[str]()
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
        define(child, "", set())
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
    """An attribute of its schema's type; where 32 bits are too few, or the value means that there is none, another with all of them."""
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
    short, wide = {1: (float, types.Double), 3: (Gf.Vec3f, types.Double3), 4: (Gf.Quatf, types.Quatd)}[len(values)]
    if kind == "double":
        attribute.Set(values[0])
        return
    attribute.Set(short(*values))
    same = [float(str(x)) for x in np.asarray(values, np.float32)] == values
    if not same or (name in MEANS_NONE and not any(values)):
        double: Any = {1: float, 3: Gf.Vec3d, 4: Gf.Quatd}[len(values)]
        prim.CreateAttribute(f"sarrus:{name}", wide, custom=True).Set(double(*values))
