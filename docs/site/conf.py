"""Sphinx settings; docs/site/build.py writes what Sphinx reads to build/site-source."""

import firmlib

project = "firmlib"
author = "The firmlib maintainers"
version = release = firmlib.__version__
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["extra"]
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
suppress_warnings = ["myst.header", "myst.xref_missing"]  # skipped levels; anchors in HTML
nb_execution_mode = "off"
nb_merge_streams = True
nb_render_markdown_format = "myst"  # claims are shown with their equations
nb_ipywidgets_js = {}  # would be fetched, and no notebook has widgets

mathjax_path = "mathjax/tex-svg.js"  # in _static: nothing is fetched
mathjax3_config = {"options": {"enableMenu": False}}

autodoc_typehints = "none"  # the docstrings say it
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_param = False  # names that share a description stand together
napoleon_custom_sections = [("Attributes", "params_style")]  # a list, not objects of their own

html_theme = "sphinx_book_theme"
html_context = {"default_mode": "auto"}  # dark or light, as the reader's system is
html_title = f"firmlib {release}"
html_static_path = ["../../build/site-source/_static"]
html_extra_path = ["../../build/site-source/extra"]
html_css_files = ["firmlib.css"]
html_js_files = ["search.js"]
copybutton_selector = "div:not(.output) > div.highlight > pre"  # code, not what it printed
html_copy_source = False
html_theme_options = {
    "use_download_button": False,  # each notebook's page has a link to the notebook as committed
    "use_fullscreen_button": False,
    "navbar_persistent": [],  # the search field stands in the sidebar
    "show_toc_level": 2,
    "show_navbar_depth": 1,
    "home_page_in_toc": True,
}


def literal_formulas(app, what, name, obj, options, lines):
    """Formulas stand indented in the docstrings: show them as they are, and take no | as markup."""
    shown, literal, before = [], False, ""
    for line in lines:
        if line.strip():
            indented = line.startswith("    ")
            if not literal and indented and not shown[-1].strip() and not before.startswith(" "):
                shown += ["::", ""]
                literal = True
            literal = literal and indented
            before = line
        escape = not literal and "`" not in line and ">>>" not in line
        shown.append(line.replace("|", r"\|") if escape else line)
    lines[:] = shown


def setup(app):
    """Run before napoleon; leave out what scikit-learn adds to every estimator."""
    app.connect("autodoc-process-docstring", literal_formulas, priority=400)
    app.connect(
        "autodoc-skip-member",
        lambda app, what, name, obj, skip, options: True if name.endswith("_request") else None,
    )
