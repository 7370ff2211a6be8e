"""The documentation's site: on a phone, on paper and in a folder on the disk."""

from __future__ import annotations

import base64
import importlib
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import sarrus
from tests.browser import Browser, NoBrowser

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE = Path(os.environ.get("SARRUS_SITE", ROOT / ".ci" / "build" / "docs"))  # of a build, if there is one
PHONE = (390, 844)  # [CSS px]
PAGE = """<!DOCTYPE html><html lang="en" data-content_root="./"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">{head}</head><body>{body}</body></html>"""


@pytest.fixture
def docs(monkeypatch):
    """Return a function that imports a module of docs/."""
    monkeypatch.syspath_prepend(DOCS)
    return importlib.import_module


@pytest.fixture(scope="module")
def browser():
    try:
        with Browser() as opened:
            yield opened
    except NoBrowser as reason:
        pytest.skip(str(reason))


def test_the_first_page_shows_the_example_of_the_readme():
    blocks = [
        re.search(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)[1]
        for page in (ROOT / "README.md", DOCS / "index.md")
    ]
    assert blocks[0] == blocks[1] and len(blocks[0].splitlines()) < 30
    assert "(architecture.md#from-c)" in (DOCS / "index.md").read_text(encoding="utf-8")


def test_paper_has_rules_of_its_own():
    style = (DOCS / "_static" / "sarrus.css").read_text(encoding="utf-8")
    paper = style.split("@media print {", 1)[1]
    for rule in ("white-space: pre-wrap", "break-after: avoid", "break-inside: avoid", "overflow: visible !important"):
        assert rule in paper
    assert 'toc_object_entries_show_parents = "hide"' in (DOCS / "conf.py").read_text(encoding="utf-8")


def texts(docs, site):
    """Write a page of two sections and the script of its text, and return the page's text."""
    article = '<article class="bd-article"><section id="a"><h1>Loops<a class="headerlink" href="#a">#</a></h1><p>Close <b>them</b>.</p>'
    article += '<section id="b"><script>no()</script><p>Rank &lt; 5</p></section></section></article>'
    (site / "p.html").write_text(article, encoding="utf-8")
    app = SimpleNamespace(outdir=site, env=SimpleNamespace(found_docs={"p"}))
    app.builder = SimpleNamespace(format="html", get_target_uri=lambda name: f"{name}.html")
    docs("pages").write_texts(app, None)
    script = (site / "page_texts.js").read_text(encoding="utf-8")
    return json.loads(script.removeprefix("PAGE_TEXTS="))["p.html"]


def test_texts_for_the_search_keep_sections_and_no_other_tags(docs, tmp_path):
    expected = '<div role="main"><section id="a">Loops Close them.<section id="b">Rank &lt; 5</section></section></div>'
    assert re.sub(r" ?(Loops) ?", r"\1 ", texts(docs, tmp_path)) == expected


def test_the_search_of_a_folder_reads_texts(docs, tmp_path, browser):
    texts(docs, tmp_path)
    script = f"<script src='{(DOCS / '_static' / 'search_files.js').as_uri()}'></script>"
    (tmp_path / "search.html").write_text(PAGE.format(head=script, body=""), encoding="utf-8")
    with browser.page((tmp_path / "search.html").as_uri(), *PHONE) as page:
        page.until("document.readyState == 'complete'")
        assert "Rank" in page.evaluate("fetch('./p.html').then(answer => answer.text())")


def test_pictures_of_the_gallery_have_the_colours_of_the_viewer(docs):
    """Bodies, pins and ground are drawn, each body in its own hue."""
    pytest.importorskip("PIL.Image")
    thumbnails, robot = docs("thumbnails"), sarrus.mechanisms.four_bar()
    picture = np.asarray(thumbnails.drawn(robot, robot.assemble()).convert("RGB")).astype(float)
    assert picture.shape == (*thumbnails.SIZE[::-1], 3)
    assert (picture[0] > 250.0).all()
    for color in (*sarrus.Skeleton(robot).colors.values(), (61, 68, 80)):
        hue = np.array(color) - np.mean(color)
        seen = picture - picture.mean(axis=-1, keepdims=True)
        share = (seen @ hue) / (np.linalg.norm(seen, axis=-1) * np.linalg.norm(hue) + 1e-9)
        dark = picture.max(axis=-1) < 230.0
        assert ((share > 0.9) & dark).sum() > 100, color


def test_shapes_in_front_hide_shapes_behind(docs):
    square = np.array([[[0.0, 0.0], [8.0, 0.0], [8.0, 8.0]], [[0.0, 0.0], [8.0, 8.0], [0.0, 8.0]]])
    corners = np.concatenate([np.concatenate([square / n, np.full((2, 3, 1), float(n))], axis=-1) for n in (1, 2)])
    face, weights, near = docs("thumbnails").raster(corners, (10, 10))
    assert (face[:4, :4] >= 2).all() and set(np.unique(face[4:8, 4:8])) <= {0, 1} and (face[8:] == -1).all()
    np.testing.assert_allclose(weights[face >= 0].sum(axis=-1), 1.0)
    assert (near[:4, :4] == 2.0).all()


@pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the documentation is not built")
@pytest.mark.parametrize(
    "name", ["index", "closed-chains", "contact", "generated-code", "gallery", "how-to", "api/_made/dynamics"]
)
def test_pages_fit_a_phone_and_paper(browser, name):
    """The body does not scroll sideways; on paper no box clips or scrolls what it holds."""
    with browser.page((SITE / f"{name}.html").as_uri(), *PHONE) as page:
        page.until("document.readyState == 'complete'")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        page.ask("Emulation.setEmulatedMedia", media="print")
        page.resize(794, 1123)  # A4
        cut = page.evaluate(
            "[...document.querySelectorAll('.bd-article pre, .bd-article table')].filter("
            "e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).length"
        )
        assert cut == 0
        assert base64.b64decode(page.ask("Page.printToPDF")["data"]).startswith(b"%PDF")
