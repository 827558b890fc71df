"""HTML from templates, for every page."""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def render(package: str, template: str, **values: Any) -> str:
    """Fill a template of a subpackage; values are escaped, and a missing one is an error."""
    return _environment(package).get_template(template).render(**values)


@cache
def _environment(package: str) -> Environment:
    here = Path(__file__).parent
    return Environment(
        loader=FileSystemLoader([here.parent / package / "templates", here]),  # the second for charts.css
        autoescape=lambda name: name is not None and name.endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=True,
    )
