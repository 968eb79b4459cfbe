"""How the site is built: `make docs`. Nothing is fetched while it is built or read."""

import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))
os.environ["MATPLOTLIBRC"] = str(HERE / "matplotlibrc")  # of the pages that are executed

import dynaesti

# autosummary imports modules by name; these two are attributes of the package
sys.modules["dynaesti.evaluation"] = dynaesti.evaluation
sys.modules["dynaesti.simulate"] = dynaesti.simulate

project = "dynaesti"
author = "The dynaesti developers"
project_copyright = "The dynaesti developers, MIT licence"
version = release = dynaesti.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "mathml",
    "verbs",
]
exclude_patterns = ["_build", "_templates", "extensions", "**.ipynb_checkpoints"]
templates_path = ["_templates"]

# Pages that begin as notebooks are executed, always all of them: an error in one ends the build.
# the kernels' log: that they talk over TCP, which on this machine alone is no news
kernels = Path(tempfile.mkdtemp(), "profile_default")
kernels.mkdir()
(kernels / "ipython_kernel_config.py").write_text("c.Application.log_level = 40\n")
os.environ["IPYTHONDIR"] = str(kernels.parent)

nb_execution_mode = os.environ.get("DOCS_EXECUTION", "force")
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 900
nb_merge_streams = True
nb_output_stderr = "remove"  # warnings are told in the pages' own words

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings have types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "dynaesti"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "cite": []}
html_theme_options = {
    "logo": {"text": "dynaesti", "image_light": "static/mark.svg", "image_dark": "static/mark.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navigation_with_keys": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_exclude = ".linenos, .gp, .go"
