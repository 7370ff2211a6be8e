"""Browser views of four mechanisms on a screen and on a phone, compared with stored pictures.

`SARRUS_SOAK=1 SARRUS_KEEP_SCREENSHOTS=1 pytest tests/api/viewer/test_screenshots.py` stores new pictures: inspect them before a commit.
"""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

import numpy as np
import pytest

import sarrus
from sarrus.viewer.shapes import HEIGHT, LETTER, PADDING, spread
from sarrus.viewer.viewer import View
from tests.browser import Browser, NoBrowser
from tests.effort import SOAK

KEPT = Path(__file__).parents[2] / "data" / "screenshots"
SCREEN, PHONE = (1280, 720), (390, 844)  # [CSS px]
SCALE = 0.5  # points a CSS px: enough to see, and four times faster to draw
BLOCK = 8  # points a side: fonts and smoothed edges of another machine change single points of it
STRONG, SHARE = 40.0, 0.15  # a block that is so different counts; so many of those with something in them may
SHOWN = {
    "four_bar": {"names": ("bodies", "joints")},
    "delta": {"forces": True},
    "stewart": {"names": ("joints",)},
    "strandbeest_leg": {"names": ("joints",), "dark": True},
}


def blocks(picture):
    """Return (rows, columns, 3) means of a picture's blocks."""
    rows, columns = (n // BLOCK for n in picture.shape[:2])
    return picture[: rows * BLOCK, : columns * BLOCK].reshape(rows, BLOCK, columns, BLOCK, 3).mean(axis=(1, 3))


def unlike(one, other):
    """Return the fraction of nonempty blocks that differ."""
    one, other = blocks(one), blocks(other)
    background = np.median(one.reshape(-1, 3), axis=0)
    seen = np.maximum(*(np.abs(x - background).max(axis=-1) for x in (one, other))) > STRONG
    return float((np.abs(one - other).max(axis=-1) > STRONG)[seen].mean())


def kept(name, size):
    image = pytest.importorskip("PIL.Image")
    return np.asarray(image.open(KEPT / f"{name}_{size[0]}.png").convert("RGB")).astype(float)


@pytest.fixture(scope="module")
def browser():
    pytest.importorskip("viser")
    pytest.importorskip("PIL.Image")
    try:
        with Browser() as opened:
            with opened.page("about:blank", *PHONE) as page:
                if not page.evaluate("!!document.createElement('canvas').getContext('webgl2')"):
                    raise NoBrowser("Chromium has no WebGL here")
            yield opened
    except NoBrowser as reason:
        pytest.skip(str(reason))


HOME = "[...document.querySelectorAll('button')].find((b) => b.innerText == 'Home')"
# the upper left corner of what holds it: of the sheet on a phone
CORNER = f"""(() => {{
  let e = {HOME};
  for (let p = e; p != document.body; p = p.parentElement) if (getComputedStyle(p).position == 'fixed') e = p;
  const r = e.getBoundingClientRect();
  return [r.left, r.top];
}})()"""
# the notice that no graphics card draws
NO_NOTICE = "'.mantine-Notifications-root {display: none}'"


def in_pixels(shown, points):
    """Return the positions of points (k, 3) in the page's camera [CSS px of the canvas]."""
    (client,) = shown._server.get_clients().values()
    camera = client.camera
    w, x, y, z = camera.wxyz
    seen = (points - camera.position) @ sarrus.Rotation.from_quaternion([x, y, z, w]).matrix
    focal = camera.image_height / 2 / math.tan(camera.fov / 2)
    return seen[:, :2] / seen[:, 2:] * focal + np.array([camera.image_width, camera.image_height]) / 2


def settled(shown, page, name, size, seconds=90.0):
    """Return the picture when it agrees and is stable, or the last one after a time limit.

    A page that was resized while it was placed has a slightly different camera: Home places it again.
    """
    deadline, before, again = time.monotonic() + seconds, 0.0, time.monotonic() + 8.0
    keep = time.monotonic() + 12.0 if os.environ.get("SARRUS_KEEP_SCREENSHOTS") else 0.0
    while True:
        time.sleep(0.3)
        now = page.picture().astype(float)
        still = np.abs(now - before).mean() < 0.05
        if time.monotonic() > deadline or (still and keep == 0.0 and unlike(kept(name, size), now) < SHARE):
            return now
        if 0.0 < keep < time.monotonic() and still:
            from PIL import Image

            KEPT.mkdir(exist_ok=True)
            few = Image.fromarray(now.astype(np.uint8)).quantize(48, dither=Image.Dither.NONE)
            few.save(KEPT / f"{name}_{size[0]}.png", optimize=True)
            return now
        if time.monotonic() > again and keep == 0.0:
            page.evaluate(f"{HOME}.click()")
            again = time.monotonic() + 8.0
        before = now


@pytest.mark.parametrize("name", SHOWN if SOAK else ("delta", "strandbeest_leg"))
def test_a_page_looks_as_it_did(browser, name):
    """Forces, and names in dark mode; other pages in a soak, because drawing without a graphics card takes ten seconds on two processors."""
    what = SHOWN[name]
    with View(getattr(sarrus.mechanisms, name)(), port=0) as shown:
        panel, labels = shown._panel, shown._scene.labels
        for kind in what.get("names", ()):
            panel.boxes[kind].value = True
        panel.forces.value, panel.dark.value = "forces" in what, "dark" in what
        with browser.page(f"{shown.url}?fixedDpr={SCALE}", *SCREEN, SCALE) as page:
            page.until(f"{HOME} !== undefined")
            style = f"Object.assign(document.createElement('style'), {{textContent: {NO_NOTICE}}})"
            page.evaluate(f"document.head.append({style})")
            for size in (SCREEN, PHONE):
                page.resize(*size, SCALE)
                now = settled(shown, page, name, size)
                assert unlike(kept(name, size), now) < SHARE
                # all joints are seen, above or beside the panel
                q = shown.q
                joints = np.array([*shown._scene.skeleton.joint_points(q).values()])
                at, (left, top) = in_pixels(shown, joints), page.evaluate(CORNER)
                end = (left, size[1]) if size == SCREEN else (size[0], top)
                assert (at > 0.0).all() and (at < np.array(end)).all()
                # and no name lies over another
                (drawn,) = labels._drawn.values()
                texts = [(labels.all[k].text, text.position) for k, (text, _) in drawn.items() if text.visible]
                assert len(texts) >= 0.8 * sum(label.kind in what.get("names", ()) for label in labels.all)
                if texts:
                    middles = in_pixels(shown, np.array([position for _, position in texts]))
                    assert not overlapping(middles, np.array([LETTER * len(text) + PADDING for text, _ in texts]))
            # a preset moves the camera, and Home takes it back
            (client,) = shown._server.get_clients().values()
            first = client.camera.position
            for button, back in (("Top", False), ("Home", True)):
                page.evaluate(f"{HOME.replace('Home', button)}.click()")
                deadline = time.monotonic() + 30.0
                while (np.abs(client.camera.position - first).max() < 1e-3) != back:
                    assert time.monotonic() < deadline, button
                    time.sleep(0.05)


# ---- without a browser -----------------------------------------------------------------------------------------------


def overlapping(middles, widths):
    """Return True if any two of these boxes (k, 2), (k,) overlap."""
    apart = np.abs(middles[:, None] - middles)
    over = (apart[..., 0] < (widths[:, None] + widths) / 2) & (apart[..., 1] < HEIGHT)
    return bool(np.triu(over, 1).any())


@pytest.mark.parametrize("size", [SCREEN, PHONE])
@pytest.mark.parametrize("name", SHOWN)
def test_the_comparison_sees_what_is_missing_and_bears_what_differs_elsewhere(name, size):
    """Missing or displaced drawings differ; other fonts and smoothing, here a blurred and shifted picture, agree."""
    picture = kept(name, size)
    assert KEPT.joinpath(f"{name}_{size[0]}.png").stat().st_size < 60_000
    scene = (slice(None), slice(0, 470)) if size == SCREEN else (slice(0, 320), slice(None))
    empty, moved = picture.copy(), picture.copy()
    empty[scene] = np.median(picture.reshape(-1, 3), axis=0)
    moved[scene] = np.roll(picture[scene], 60, axis=0)
    assert unlike(picture, empty) > 2 * SHARE and unlike(picture, moved) > 2 * SHARE
    soft = (picture + np.roll(picture, 1, axis=0) + np.roll(picture, 1, axis=1)) / 3
    assert unlike(picture, soft) < SHARE / 2


def test_names_are_spread_beside_what_they_name_and_never_over_one_another():
    rng = np.random.default_rng(0)
    for count, area in ((1, SCREEN), (12, PHONE), (40, SCREEN), (200, PHONE)):
        points, widths = rng.uniform(0, area, (count, 2)), rng.uniform(20, 120, count)
        middles = spread(points, widths, np.array(area, dtype=float))
        there = np.isfinite(middles).all(axis=1)
        assert there.mean() > (0.9 if count < 100 else 0.2)
        half = np.stack([widths, np.full(count, HEIGHT)], axis=1)[there] / 2
        assert (middles[there] >= half).all() and (middles[there] <= np.array(area) - half).all()
        assert not overlapping(middles[there], widths[there])
        assert (np.abs(middles - points)[there] < half + 110).all()
