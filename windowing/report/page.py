"""The view of a pipeline -> one HTML page, which loads nothing from anywhere.

Template, style and script are files in `assets`, and so is the plotting library. All of them stand
in the page. By its policy the browser runs these two scripts and no other, and requests nothing.
"""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from json import dumps

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from windowing.report.section import View

_ASSETS = files("windowing.report.assets")
LIBRARY = "plotly-basic.min.js"


def render_page(view: View) -> str:
    """The page as HTML. Every text of the view is escaped."""
    library, script = _read_asset(LIBRARY), _read_asset("page.js")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = environment.from_string(_read_asset("page.html.j2"))
    return template.render(
        view=view,
        style=Markup(_read_asset("page.css")),
        library=Markup(library),
        script=Markup(script),
        allowed=" ".join(map(_allow_script, (library, script))),
        figures=Markup(_write_figures(view)),
    )


def _read_asset(name: str) -> str:
    return (_ASSETS / name).read_text("utf-8")


def _allow_script(text: str) -> str:
    """The source expression by which a policy allows a script of exactly this text."""
    digest = b64encode(sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _write_figures(view: View) -> str:
    """The figures by name as JSON that may stand in a script element, whatever texts it has."""
    figures = {chart.name: chart.figure for chart in view.charts}
    text = dumps(figures, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
