"""Figures of what was chosen by hidden entries, and why. Matplotlib is imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from roadict.extras import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HIDDEN, _NONZEROS = "#1f5fa8", "#c8641e"


def epsilon_figure(
    epsilon: ArrayLike, hidden_error: ArrayLike, standard_error: ArrayLike, nonzeros: ArrayLike, chosen: int
) -> Figure:
    """Plot the error of hidden entries and the nonzero codes over the error bound, and mark the chosen bound.

    Parameters
    ----------
    epsilon, hidden_error, standard_error, nonzeros : array-like of shape (n_points,)
        Columns of an ``EpsilonPath``.
    chosen : int
        Index of the chosen bound.

    Returns
    -------
    Figure

    Examples
    --------
    >>> figure = epsilon_figure([0.3, 0.1, 0.03], [0.5, 0.3, 0.4], [0.01, 0.0, 0.01], [2.0, 5.0, 12.0], 1)
    >>> len(figure.axes)
    2
    """
    bounds, errors, deviations, counts = (
        np.asarray(column, dtype=np.float64) for column in (epsilon, hidden_error, standard_error, nonzeros)
    )
    require("a figure", "matplotlib")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    left = figure.add_subplot()
    left.fill_between(bounds, errors - deviations, errors + deviations, color=_HIDDEN, alpha=0.2, linewidth=0)
    left.plot(bounds, errors, color=_HIDDEN, label="error of hidden entries (band: one standard error)")
    right = left.twinx()
    right.plot(bounds, counts, color=_NONZEROS, linestyle="--", label="nonzero codes per sample")
    left.axvline(bounds[chosen], color="black", linewidth=1, linestyle=":", label=f"chosen: {bounds[chosen]:.3g}")
    left.set_xscale("log")
    left.set_xlabel("relative data error ε")
    left.set_ylabel("error of hidden entries")
    right.set_ylabel("nonzero codes per sample")
    lines = [*left.get_lines(), *right.get_lines()]
    left.legend(lines, [str(line.get_label()) for line in lines], fontsize=8, loc="upper center")
    left.set_title("Error bound chosen by hidden entries", fontsize=12)
    return figure


def number_figure(
    n_components: ArrayLike, hidden_error: ArrayLike, standard_error: ArrayLike, chosen: int, flat: bool = False
) -> Figure:
    """Plot the error of hidden entries over the number of atoms, and mark the chosen number.

    Parameters
    ----------
    n_components, hidden_error, standard_error : array-like of shape (n_points,)
        Columns of ``cv_results_`` of ``ROADCV``.
    chosen : int
        The chosen number.
    flat : bool
        Whether the curve has no clear minimum.

    Returns
    -------
    Figure

    Examples
    --------
    >>> figure = number_figure([8, 12, 16], [0.5, 0.3, 0.4], [0.01, 0.0, 0.01], 12)
    >>> figure.axes[0].get_xlabel()
    'number of atoms'
    """
    numbers, errors, deviations = (
        np.asarray(column, dtype=np.float64) for column in (n_components, hidden_error, standard_error)
    )
    require("a figure", "matplotlib")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.fill_between(numbers, errors - deviations, errors + deviations, color=_HIDDEN, alpha=0.2, linewidth=0)
    axes.plot(numbers, errors, color=_HIDDEN, marker="o", markersize=4, label="error (band: one standard error)")
    axes.axvline(chosen, color="black", linewidth=1, linestyle=":", label=f"chosen: {chosen}")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("number of atoms")
    axes.set_ylabel("error of hidden entries")
    axes.legend(fontsize=8)
    note = " (no clear minimum)" if flat else ""
    axes.set_title(f"Number of atoms chosen by hidden entries{note}", fontsize=12)
    return figure
