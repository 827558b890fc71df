"""HTML from templates, for every page."""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def render(room: str, template: str, **values: Any) -> str:
    """Fill a template of a room of the package; values are escaped, and one that is missing is an error."""
    return _environment(room).get_template(template).render(**values)


@cache
def _environment(room: str) -> Environment:
    here = Path(__file__).parent
    return Environment(
        loader=FileSystemLoader([here.parent / room / "templates", here]),  # the second for charts.css
        autoescape=lambda name: name is not None and name.endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=True,
    )
