"""Settings that all components share, and those for results, whose HTML a script brings to life."""

from pathlib import Path
from typing import Any

import gradio as gr

from roadict.studio.results import Shown

SCRIPT = Path(__file__).with_name("results.js").read_text(encoding="utf-8")
PLAIN: dict[str, Any] = {"apply_default_css": False, "elem_classes": "rd-html"}
"""For HTML that only our style sheet applies to."""
QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
"""For events: no spinner over their outputs, and no name in Gradio's API."""


def result_view(name: str) -> Any:
    """Return an empty component, hidden until there is a result."""
    return gr.HTML(elem_id=name, visible=False, js_on_load=SCRIPT, **PLAIN)


def shown(view: Any, details: Any, result: Shown) -> dict[Any, Any]:
    """Return the updates that show a result."""
    texts = {view: result.view, details: result.details}
    return {component: gr.update(value=text, visible=bool(text)) for component, text in texts.items()}
