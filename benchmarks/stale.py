"""List the sections of RESULTS.md that are older than the code they measure: python benchmarks/stale.py [--run [WORD]]

A section names a digest of its script, of programs that this runs and of all that they import from roadict, without
comments and docstrings. Sections of uncommitted code are listed too. The exit status is 1 if any is listed.
--run measures them again, one after the other, hours in all: only those whose command has WORD in it, if given. Stopped
and started again, it goes on with those that are left.
"""

import argparse
import re
import shlex
import subprocess
import sys

from results import RESULTS, ROOT, measured_code

SECTION = re.compile(r"^## (.+)\n\n`([^`]+)`\n", re.MULTILINE)
CODE = re.compile(r"^\(.*, commit (\S+), code (\w+), .*\)$", re.MULTILINE)


def stale_sections(text):
    """Title, command and reason of every section that does not show the present code."""
    for part in re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]:
        head, written = SECTION.match(part), CODE.search(part)
        title = part.split("\n", 1)[0].removeprefix("## ")
        if head is None:
            yield title, "", "no command under its title"
        elif written is None:
            yield title, head[2], "names no commit and no code"
        elif not (code := measured_code(head[2])):
            yield title, "", f"there is no script for its command, {head[2]}"
        elif written[2] != code:
            yield title, head[2], f"the code has changed since commit {written[1]}"
        elif written[1].endswith("-dirty"):
            yield title, head[2], f"measured with uncommitted changes, commit {written[1]}"


def run(word):
    """Run the commands of stale sections in which a word occurs, each once."""
    commands = dict.fromkeys(command for _, command, _ in stale_sections(RESULTS.read_text(encoding="utf-8")))
    for command in (command for command in commands if command and word in command):
        print(f"$ {command}", file=sys.stderr, flush=True)
        _, *arguments = shlex.split(command)
        if (status := subprocess.run([sys.executable, *arguments], cwd=ROOT, check=False).returncode) != 0:
            print(f"{command}: exit status {status}", file=sys.stderr, flush=True)


def main():
    """Print the list, after --run what is left of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", nargs="?", const="", metavar="WORD", help="measure stale sections again")
    word = parser.parse_args().run
    if word is not None:
        run(word)
    text = RESULTS.read_text(encoding="utf-8")
    found = list(stale_sections(text))
    for title, command, reason in found:
        print(f"{title}: {reason}{command and '; run: ' + command}")
    print(f"{len(found)} of {len(re.findall('^## ', text, flags=re.MULTILINE))} sections are stale")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
