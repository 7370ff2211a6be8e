"""The documentation: `python -m sphinx -W -j auto docs build/docs` after `pip install ".[docs]"`."""

import os
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

# kernels of a profile of their own: a user's has no say, and warnings of transport are of no interest here
profile = DOCS.parent / "build" / "docs-ipython" / "profile_default"
profile.mkdir(parents=True, exist_ok=True)
(profile / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 40\n")
os.environ["IPYTHONDIR"] = str(profile.parent)

import api
import gallery
import pages
import sarrus

project = "sarrus"
author = "The sarrus authors"
copyright = "The sarrus authors, BSD-3-Clause"
version = release = sarrus.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_*"]
templates_path = ["_templates"]

# every ```python block is a cell that runs, on pages that stay plain Markdown
nb_custom_formats = {".md": "pages.notebook"}
nb_execution_excludepatterns = pages.without_code(DOCS)
nb_execution_mode = "force"  # a cache would know the page's code and not the library's
nb_execution_timeout = 120
nb_execution_in_temp = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "warn"  # a warning in a cell is a warning of the build
nb_mime_priority_overrides = [("html", "image/svg+xml", 0)]

myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 3
suppress_warnings = ["ref.python"]  # napoleon links attributes by their last name

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say shapes and units
napoleon_google_docstring = False
napoleon_use_param = napoleon_use_rtype = False
napoleon_use_ivar, napoleon_attr_annotations = True, False
napoleon_custom_sections = ["Returned"]  # what api.as_rst calls them

html_theme = "pydata_sphinx_theme"
html_title = "sarrus"
html_extra_path = ["_extra"]
html_static_path = ["_static"]
html_sidebars = {"index": [], "install": [], "gallery": []}
html_css_files = ["sarrus.css"]
html_js_files = ["search_files.js"]
# "On this page" is narrower than a method with its class
toc_object_entries_show_parents = "hide"
html_copy_source = html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 8,
    "show_nav_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "search_as_you_type": True,
    "secondary_sidebar_items": ["page-toc", "notebook"],
}


def setup(app):
    """What is made before pages are read, what is said of their links, and what is looked at in the end."""
    api.write(DOCS / "api" / "_made")
    gallery.write(DOCS / "_extra", DOCS / "_made")
    pages.write_notebooks(DOCS / "_extra" / "notebooks", DOCS / "_made")
    app.connect("source-read", pages.links)
    app.connect("autodoc-process-docstring", api.as_rst, priority=400)  # before napoleon
    app.connect("doctree-resolved", pages.crossrefs)
    app.connect("html-page-context", pages.offer_notebook)
    app.connect("build-finished", api.check)
    app.connect("build-finished", pages.strip)
    app.connect("build-finished", pages.write_texts)
