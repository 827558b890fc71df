"""HTML from templates, for every page. Jinja is imported on first use."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadict.extras import require

if TYPE_CHECKING:
    from jinja2 import Environment


def render(package: str, template: str, **values: Any) -> str:
    """Fill a template of a subpackage; values are escaped, and a missing one is an error."""
    return _environment(package).get_template(template).render(**values)


@cache
def _environment(package: str) -> Environment:
    require("a page", "jinja2")
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    here = Path(__file__).parent
    return Environment(
        loader=FileSystemLoader([folder / "templates" for folder in (here.parent / package, here)]),
        autoescape=lambda name: name is not None and name.endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=True,
    )
