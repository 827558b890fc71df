"""The README's Python runs, and its commands exist."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_python_blocks_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert blocks("python")
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), {})  # noqa: S102
    reason, iterations, error = capsys.readouterr().out.splitlines()[0].split()
    assert reason == "converged"
    assert int(iterations) < 2000
    assert float(error) < 1e-2


def test_commands_and_links_exist():
    text = README.read_text(encoding="utf-8")
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", "\n".join(blocks("sh")), flags=re.MULTILINE):
        assert f"\n{target}:" in makefile
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (README.parent / link).exists(), link


def test_shell_commands_parse(tmp_path, monkeypatch, capsys):
    """Every roadict line of the README is refused for its missing files only."""
    from roadict.cli import main

    monkeypatch.chdir(tmp_path)
    lines = [line.split("#")[0].split() for line in "\n".join(blocks("sh")).splitlines() if line.startswith("roadict ")]
    assert len(lines) == 11
    for words in lines:
        monkeypatch.setattr("sys.argv", words)
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 2
        assert "No such file" in capsys.readouterr().err
