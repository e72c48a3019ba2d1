"""
The site: `make site`. Its source directory is the root of the checkout, so links between pages are the same in the
site and in a checkout. A link to a file that is no page, such as a source, becomes a download.
"""

from importlib.metadata import version as version_of

project = "gtstub"
author = "The gtstub developers"
copyright = author  # noqa: A001  Sphinx' own name
release = version = version_of("gtstub")

extensions = [
    "breathe",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_external_toc",
]
include_patterns = ["*.md", "docs/**.md", "examples/*/README.md"]
external_toc_path = "docs/_toc.yml"
exclude_patterns = [".*", "build", "dist", "generator", "runtime", "templates", "tests"]
nitpicky = True
nitpick_ignore_regex = [  # types of other packages, of C, and some that no page describes
    ("py:.*", r"(?!gtstub\.).*|.*\.(StubBackend|Backend|Variant|Exchange|Device|_host\.Step)"),
    ("c:identifier", r"(size|u?int[0-9]+)_t"),
]

myst_heading_anchors = 4  # as the links of the pages have them

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
maximum_signature_line_length = 100
smartquotes = False  # they turn -- of options into a dash
default_role = "literal"  # docstrings are plain text with `code`

breathe_projects = {"gtstub": "../build/doxygen/xml"}
breathe_default_project = "gtstub"
breathe_domain_by_extension = {"h": "c"}
breathe_show_include = False

html_theme = "furo"
html_title = f"gtstub {release}"
