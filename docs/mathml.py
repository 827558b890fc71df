"""Sphinx extension: equations as MathML, which browsers show without scripts, fonts or a network."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.errors import ExtensionError


def _converted(node, display):
    """Convert LaTeX; what latex2mathml does not know, it passes on as it is."""
    mathml = convert(node.astext(), display=display)
    if unknown := re.search(r"\\\w*|&(?!#?\w+;)", mathml):
        raise ExtensionError(f"latex2mathml does not know {unknown[0]!r} in {node.astext()!r}")
    # Browsers stretch and shift the bars of a norm that has an exponent or an index.
    return mathml.replace("<mo>&#x02016;</mo>", '<mo stretchy="false">&#x02016;</mo>')


def _visit_inline(translator, node):
    translator.body.append(_converted(node, "inline"))
    raise nodes.SkipNode


def _visit_block(translator, node):
    translator.body.append(f'<div class="equation">{_converted(node, "block")}</div>\n')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
