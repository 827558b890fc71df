"""Blocks of Markdown pages that commands write: between two comments, the first of which names the command."""

import re


def content(text, name):
    """What stands in the block; ValueError if the text has no such block."""
    return _found(text, name)[2]


def replaced(text, name, block):
    """The text with the block's content replaced; ValueError if it has no such block."""
    place = _found(text, name)
    inside = f"\n{block}\n" if block else "\n"
    return text[: place.start()] + place[1] + inside + place[3] + text[place.end() :]


def _found(text, name):
    place = re.search(rf"(<!-- {name}(?:: [^\n]*)? -->)\n(.*?)\n?(<!-- /{name} -->)", text, flags=re.DOTALL)
    if place is None:
        raise ValueError(f"no place for the {name}: put the lines <!-- {name} --> and <!-- /{name} --> into the page")
    return place
