"""Pictures of mechanisms as the viewer shows them, drawn without a browser.

The viewer's own scene is built on a recorder in place of a server, so shapes, colours, ground and camera are those of the viewer. Its
two lights, their shadow and its tone mapping (ACES, as in three.js) are computed here for every pixel.
"""

from types import SimpleNamespace

import numpy as np

from sarrus.spatial import Rotation
from sarrus.viewer.scene import Scene

SIZE = (280, 210)  # [px]
FARTHER = 1.15  # distance of the camera, as a multiple of the viewer's: a small picture shows pedestals, too
OVER = 2  # samples a pixel, along each side
COLOURS = 64  # of a file
SUN = np.array([-0.2, 0.2, 1.0])  # towards the light that casts shadows; z is up
DIRECT, BELOW, AROUND = 3.0, 0.4, 1.5  # light of the sun, from below, and from all sides
SHADE = 0.125  # opacity of shadows on the ground
BIAS = 0.02  # distance of a surface that shades another, as a fraction of the mechanism's size
MAP = 400  # samples along each side of the map of shadows
ACES_IN = np.array(
    [
        [0.59719, 0.35458, 0.04823],
        [0.07600, 0.90834, 0.01566],
        [0.02840, 0.13383, 0.83777],
    ]
)
ACES_OUT = np.array(
    [
        [1.60475, -0.53108, -0.07367],
        [-0.10208, 1.10813, -0.00605],
        [-0.00327, -0.07276, 1.07602],
    ]
)


class Recorder:
    """Server of a viewer that keeps the nodes of its scene by their paths."""

    def __init__(self):
        self.scene, self.nodes = self, {}
        self.initial_camera = SimpleNamespace()

    def __getattr__(self, name):
        return self._add if name.startswith("add_") else lambda *_, **__: {}

    def _add(self, path, *mesh, **look):
        node = {
            "visible": True,
            "wxyz": (1.0, 0.0, 0.0, 0.0),
            "position": np.zeros(3),
            "scale": 1.0,
            **look,
        }
        node["vertices"], node["faces"] = mesh if len(mesh) == 2 else (None, None)
        self.nodes[path] = SimpleNamespace(**node)
        return self.nodes[path]

    def meshes(self):
        """Yield vertices (k, 3) in the world, faces (m, 3) and colour of every visible mesh."""
        for path, node in self.nodes.items():
            if node.vertices is not None and node.visible:
                points, parts = node.vertices, path.split("/")
                for end in range(len(parts), 1, -1):
                    if frame := self.nodes.get("/".join(parts[:end])):
                        points = points * frame.scale @ rotation(frame).T + frame.position
                yield points, node.faces, node.color


def rotation(node):
    w, x, y, z = node.wxyz
    return Rotation.from_quaternion([x, y, z, w]).matrix


def drawn(robot, q):
    """Return the picture of a mechanism in a configuration q (nq,) as an image of Pillow."""
    from PIL import Image

    server = Recorder()
    scene = Scene(server, robot, q, (), ())
    scene.show(q)
    corners, normals, colors = triangles(server.meshes())
    camera, grid = server.initial_camera, scene._grid
    eye = camera.look_at + FARTHER * (camera.position - camera.look_at)
    width, height = OVER * SIZE[0], OVER * SIZE[1]
    ahead = unit(camera.look_at - eye)
    right = unit(np.cross(ahead, camera.up))
    axes = np.stack([right, np.cross(ahead, right), ahead])  # right, down, ahead
    focal = height / 2 / np.tan(camera.fov / 2)

    seen = (corners - eye) @ axes.T
    flat = np.concatenate(
        [
            seen[..., :2] / seen[..., 2:] * focal + [width / 2, height / 2],
            1.0 / seen[..., 2:],
        ],
        axis=-1,
    )
    face, weights, near = raster(flat, (height, width))

    def rays(columns, rows):
        flat = np.stack(
            [columns - width / 2, rows - height / 2, np.full(np.shape(columns), focal)],
            axis=-1,
        )
        return flat / focal @ axes

    # all light comes along the upward direction, as the viewer turns the world
    world = rotation(grid)
    sun, up = unit(world @ SUN), world[:, 2]
    in_shadow = shadows(corners, sun)
    # one sample a pixel is enough for the ground, whose lines are smooth
    coarse = np.meshgrid(*(np.arange(OVER / 2, n, OVER) for n in (width, height)))
    below = ground(eye, rays(*coarse), grid, world, in_shadow)
    picture = below.repeat(OVER, axis=0).repeat(OVER, axis=1)
    on = face >= 0
    row, column = np.nonzero(on)
    ahead_of_eye = rays(column + 0.5, row + 0.5)
    points = eye + ahead_of_eye / near[on][:, None]
    normal = unit(np.einsum("pk,pki->pi", weights[on], normals[face[on]]))
    normal *= -np.sign(np.einsum("pi,pi->p", normal, ahead_of_eye))[:, None]
    lit = np.maximum(normal @ sun, 0.0) * (1.0 - in_shadow(points, BIAS))
    light = (
        DIRECT * lit
        + BELOW * np.maximum(-normal @ up, 0.0)
        + AROUND * (1.0 + 0.3 * normal @ up)
    ) / np.pi
    picture[on] = displayed(colors[face[on]] * light[:, None])
    small = picture.reshape(SIZE[1], OVER, SIZE[0], OVER, 3).mean(axis=(1, 3))
    image = Image.fromarray(np.rint(255.0 * small).astype(np.uint8))
    return image.quantize(COLOURS, dither=Image.Dither.NONE)


def unit(vectors):
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-300)


def triangles(meshes):
    """Return corners and normals (m, 3, 3) of all triangles, and their colours (m, 3) in linear light."""
    corners, normals, colors = [], [], []
    for points, faces, color in meshes:
        at = points[faces]
        across = np.cross(at[:, 1] - at[:, 0], at[:, 2] - at[:, 0])
        smooth = np.zeros_like(points)
        np.add.at(smooth, faces, across[:, None])
        corners.append(at)
        normals.append(unit(smooth)[faces])
        colors.append(np.broadcast_to((np.array(color) / 255.0) ** 2.2, (len(faces), 3)))
    return np.concatenate(corners), np.concatenate(normals), np.concatenate(colors)


def raster(corners, shape):
    """Return the front triangle of each sample (h, w), -1 without one, its barycentric coordinates (h, w, 3) and its nearness (h, w).

    Corners (m, 3, 3) are a column, a row, and a nearness, of which the largest is in front.
    """
    h, w = shape
    x, y = corners[..., 0], corners[..., 1]
    # the rows of each triangle, and in each row the columns between two of its edges
    k, row = spans(
        np.clip(np.ceil(y.min(axis=1) - 0.5), 0, h),
        np.clip(np.floor(y.max(axis=1) - 0.5), -1, h - 1),
    )
    left, right = np.full(len(k), np.inf), np.full(len(k), -np.inf)
    for a, b in ((0, 1), (1, 2), (2, 0)):
        rise = (y[:, b] - y[:, a])[k]
        part = (row + 0.5 - y[k, a]) / np.where(rise == 0.0, np.inf, rise)
        at = np.where(
            (part >= 0.0) & (part <= 1.0) & (rise != 0.0),
            x[k, a] + part * (x[:, b] - x[:, a])[k],
            np.nan,
        )
        left, right = np.fmin(left, at), np.fmax(right, at)
    some, column = spans(
        np.clip(np.ceil(left - 0.5), 0, w), np.clip(np.floor(right - 0.5), -1, w - 1)
    )
    k, row = k[some], row[some]
    # barycentric coordinates and nearness are linear in the picture
    (ux, uy), (vx, vy) = ((corners[:, n, :2] - corners[:, 0, :2]).T for n in (1, 2))
    area = ux * vy - vx * uy
    area[area == 0.0] = np.inf
    to_share = (
        np.stack([vy, -vx, -uy, ux], axis=-1).reshape(-1, 2, 2) / area[:, None, None]
    )
    slope = np.einsum("mk,mki->mi", corners[:, 1:, 2] - corners[:, :1, 2], to_share)
    start = corners[:, 0, 2] - (slope * (corners[:, 0, :2] - 0.5)).sum(axis=1)
    depth = start[k] + slope[k, 0] * column + slope[k, 1] * row
    sample, near = row * w + column, np.zeros(h * w)
    np.maximum.at(near, sample, depth)
    front = depth == near[sample]
    sample, k = sample[front], k[front]
    offset = np.stack([column[front], row[front]], axis=-1) + 0.5 - corners[k, 0, :2]
    share = np.einsum("pki,pi->pk", to_share[k], offset)
    face, weights = np.full(h * w, -1), np.zeros((h * w, 3))
    face[sample], weights[sample] = (
        k,
        np.concatenate([1.0 - share.sum(axis=-1, keepdims=True), share], axis=-1),
    )
    return face.reshape(h, w), weights.reshape(h, w, 3), near.reshape(h, w)


def spans(first, last):
    """Return for all integers from `first` to `last` (n,), inclusive, the index of the span and the integer."""
    first = np.nan_to_num(first, posinf=0.0, neginf=0.0).astype(int)
    count = np.maximum(
        np.nan_to_num(last, posinf=-1.0, neginf=-1.0).astype(int) - first + 1, 0
    )
    index = np.repeat(np.arange(len(first)), count)
    return index, np.arange(len(index)) - (np.cumsum(count) - count)[index] + first[index]


def shadows(corners, sun):
    """Return a function of points (..., 3) and a tolerance, 1.0 where triangles hide the sun, 0.0 elsewhere."""
    first = unit(np.cross(sun, [0.6, 0.8, 0.0] if abs(sun[2]) > 0.5 else [0.0, 0.0, 1.0]))
    axes = np.stack([first, np.cross(sun, first), sun])
    seen = corners @ axes.T
    low, size = (
        seen.min(axis=(0, 1)),
        float(np.ptp(seen[..., :2], axis=(0, 1)).max()) or 1.0,
    )
    scale = [(MAP - 2) / size, (MAP - 2) / size, 1.0 / size]
    face, _, near = raster((seen - low) * scale + [1.0, 1.0, 1.0], (MAP, MAP))

    def hidden(points, tolerance):
        x, y, height = np.moveaxis(
            (points @ axes.T - low) * scale + [1.0, 1.0, 1.0], -1, 0
        )
        inside = (x >= 0) & (x < MAP) & (y >= 0) & (y < MAP)
        row, column = (
            np.where(inside, y, 0).astype(int),
            np.where(inside, x, 0).astype(int),
        )
        return (
            inside & (face[row, column] >= 0) & (near[row, column] > height + tolerance)
        ).astype(float)

    return hidden


def ground(eye, rays, grid, world, in_shadow):
    """Return the white background (h, w, 3) with the lines of the ground and shadows on it, which fade in the distance."""
    down = rays @ world[:, 2]
    drop = (eye - grid.position) @ world[:, 2]
    ahead = np.where(down * drop < 0.0, -drop / np.where(down == 0.0, 1.0, down), np.inf)
    with np.errstate(invalid="ignore"):
        points = eye + ahead[..., None] * rays
        at = (points - grid.position) @ world[:, :2]
        on = np.isfinite(at).all(axis=-1)
        fade = np.where(
            on,
            np.clip(
                1.0
                - np.linalg.norm(ahead[..., None] * rays, axis=-1) / grid.fade_distance,
                0.0,
                1.0,
            ),
            0.0,
        )
        picture = np.ones(rays.shape)
        for size, color in (
            (grid.cell_size, grid.cell_color),
            (grid.section_size, grid.section_color),
        ):
            cells = at / size
            step = sum(np.abs(np.gradient(cells, axis=axis)) for axis in (0, 1))
            line = np.clip(
                1.0 - np.abs(np.mod(cells - 0.5, 1.0) - 0.5) / step, 0.0, 1.0
            ).max(axis=-1)
            alpha = np.nan_to_num(line * fade)[..., None]
            picture = picture * (1.0 - alpha) + alpha * np.array(color) / 255.0
        shade = SHADE * fade * in_shadow(np.where(on[..., None], points, 1e9), 0.0)
    return picture * (1.0 - shade[..., None])


def displayed(light):
    """Return colours (..., 3) on a screen, from 0 to 1, of linear light."""
    v = light / 0.6 @ ACES_IN.T
    v = (v * (v + 0.0245786) - 0.000090537) / (v * (0.983729 * v + 0.4329510) + 0.238081)
    return np.clip(v @ ACES_OUT.T, 0.0, 1.0) ** (1.0 / 2.2)
