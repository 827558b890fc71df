"""Warnings that name the line of the user."""

import sys
import warnings

SKIPPED = ("roadict.", "sklearn.", "contextlib")
"""Modules between a user's call and a warning: scikit-learn wraps methods, and context managers run in contextlib."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first frame of the user: how deep a generator is in the stack depends on its driver."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(SKIPPED):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
