"""A terminal's screen, as far as the program uses it: what stays on it, and every version of the bar."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from typing import NamedTuple

from program import GUARD, PROGRAM, shown_on

TOKEN = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|(.)", re.DOTALL)


class Screen:
    """Rows of characters, at most ``width`` wide; it never scrolls.

    ``frames`` holds what each row showed when the program erased it as a whole.
    """

    def __init__(self, width):
        self.width = width
        self.rows, self.wrapped, self.frames = [[]], [False], []
        self.row = self.column = 0

    def feed(self, text):
        for numbers, command, character in TOKEN.findall(text):
            if character:
                self._put(character)
            elif command == "A":
                self.row = max(0, self.row - int(numbers or 1))
            elif command == "K" and numbers == "2":
                self.frames.append("".join(self.rows[self.row]).rstrip())
                self.rows[self.row], self.wrapped[self.row] = [], False
            elif command == "K":
                del self.rows[self.row][self.column :]
            else:
                assert command == "m" or (numbers, command) in (("?25", "l"), ("?25", "h")), (numbers, command)

    def _put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self._next_row(wrapped=False)
        else:
            assert character.isprintable(), repr(character)
            if self.column == self.width:
                self._next_row(wrapped=True)
                self.column = 0
            row = self.rows[self.row]
            row += [" "] * (self.column + 1 - len(row))
            row[self.column] = character
            self.column += 1

    def _next_row(self, wrapped):
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append([])
            self.wrapped.append(False)
        self.wrapped[self.row] |= wrapped

    @property
    def lines(self):
        """Lines that are left, those that were wrapped as one, without the empty one at the end."""
        lines = []
        for row, wrapped in zip(map("".join, self.rows), self.wrapped, strict=True):
            lines = [*lines[:-1], lines[-1] + row] if wrapped else [*lines, row]
        return [line.rstrip() for line in (lines if lines[-1] else lines[:-1])]


class Shown(NamedTuple):
    """How a program ended, and its screen."""

    code: int
    screen: Screen


def on_screen(width, *arguments, cwd=None, **settings):
    """Run the program with all streams on a terminal of this width, as people do; 0: one of 80 that does not tell."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color"}
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        environment.pop(name, None)
    environment |= settings
    command = [*PROGRAM, *map(str, arguments)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=cwd) as process:
        os.close(theirs)
        shown = shown_on(ours)
        code = process.wait(GUARD)
    screen = Screen(width or 80)
    screen.feed(shown.decode())
    return Shown(code, screen)
