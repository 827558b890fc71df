"""The help on terminals: summaries are complete, lines fit, and many options come in groups."""

import os
import re

import pytest

if os.name == "nt":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

from roadict.cli.app import app
from screen import on_screen

GROUPS = {
    "learn": [
        "Arguments",
        "Output",
        "Data",
        "Dictionary",
        "Noise and sparsity",
        "Search",
        "Computation",
        "Checkpoints",
        "Several processes (torchrun)",
        "Other options",
        "Examples",
    ],
    "encode": ["Arguments", "Output", "Codes", "Data", "Computation", "Other options", "Examples"],
    "upscale": ["Arguments", "Output", "Model", "Computation", "Other options", "Examples"],
    "denoise": ["Arguments", "Options", "Examples"],
    "report": ["Arguments", "Options", "Examples"],
}


def summaries():
    """The first sentence of every command, by its name."""
    commands = [command.callback for command in app.registered_commands]
    return {each.__name__: re.sub(r"\s+", " ", each.__doc__.partition("\n\n")[0]) for each in commands}


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_overview_cuts_no_summary(width):
    code, screen = on_screen(width, "--help")
    assert code == 0
    assert all(len(line) <= width for line in screen.lines)
    listed = "\n".join(screen.lines).partition("Commands:\n")[2]
    found = dict(re.findall(r"^  (\w+) +((?:.|\n   )+)", listed, re.MULTILINE))
    assert {name: " ".join(text.split()) for name, text in found.items()} == summaries()
    if width >= 80:
        assert len(listed.splitlines()) == len(found), "a line each"


@pytest.mark.parametrize("name", GROUPS)
def test_many_options_come_in_groups(roadict, name):
    text = roadict(name, "--help").out
    assert re.findall(r"^(?:  (?=E))?(\w.*):$", text, re.MULTILINE) == GROUPS[name]


def test_the_help_of_a_command_fits_and_lists_every_option_once(roadict):
    code, screen = on_screen(80, "learn", "--help")
    assert code == 0
    text = "\n".join(screen.lines)
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.MULTILINE)
    command = next(each.callback for each in app.registered_commands if each.callback.__name__ == "learn")
    renamed = {"n_components": "components"}
    names = [name for name in command.__annotations__ if name not in ("data", "return")]
    expected = [f"--{renamed.get(name, name).replace('_', '-')}" for name in names]
    assert sorted(options) == sorted([*expected, "--help"])


@pytest.mark.parametrize("name", summaries())
def test_the_help_of_every_command_fits_and_is_plain(roadict, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "80")
    text = roadict(name, "--help").out
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert re.search(r"[{}]|\[\[|<list|range>|x>=", text) is None, "the words of Typer"


def test_arguments_are_named_as_in_the_text_below(roadict):
    assert roadict("encode", "--help").out.startswith("Usage: roadict encode [OPTIONS] MODEL DATA\n")
    assert roadict("report", "--help").out.startswith("Usage: roadict report [OPTIONS] [DIR]...\n")
