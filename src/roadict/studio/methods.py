"""Methods that learn a dictionary: their names on the page, what they accept, and what they minimise."""

import filecmp
from typing import Any, NamedTuple

from roadict.coders.registry import default_sparsity
from roadict.studio.jobs import Job
from roadict.updates.registry import UPDATES

ROAD = "road"
_NAMES = {
    ROAD: "ROAD",
    "mod": "MOD",
    "ksvd": "K-SVD",
    "approximate-ksvd": "Approximate K-SVD",
    "simco": "SimCO",
    "blotless": "BLOTLESS",
}
METHODS = {name: _NAMES.get(name, name.replace("-", " ").capitalize()) for name in (ROAD, *UPDATES)}
"""Names on the page by those of the command line."""


def codes_by_number(method: str) -> bool:
    """Whether a method is told how many atoms a signal may have: one of two stages with a greedy coder."""
    return method in UPDATES and UPDATES[method].penalty is None


class Objective(NamedTuple):
    """What a fit minimises, in words, and the number that this depends on, with its name; None: on none."""

    text: str
    name: str = ""
    value: float | None = None


def objective_of(model: Any) -> Objective:
    """Return what a fitted model minimises."""
    update = getattr(model, "update", None)
    if update is None:
        return Objective("the sum of the absolute coefficients", "error bound", model.epsilon_)
    if codes_by_number(update):
        given = model.n_nonzero_coefs
        most = int(default_sparsity(model.n_features_in_)) if given is None else given
        return Objective("the data error", "number of atoms per signal", most)
    penalty = "the sum of the absolute coefficients" if update == "sequential" else "a concave penalty"
    return Objective(f"{penalty} plus the squared data error", "weight", model.alpha_)


def why_not_compared(jobs: tuple[Job, Job], models: tuple[Any, Any]) -> str:
    """Say why the objectives of two fits cannot be compared; "" if both minimise the same."""
    if not filecmp.cmp(jobs[0].source, jobs[1].source, shallow=False):
        return "The two runs have different signals, so their errors and objectives are not of the same data."
    left, right = map(objective_of, models)
    if left.text != right.text:
        return (
            f"The objectives are not shown, as they are not of the same problem: on the left {left.text} is made "
            f"small, on the right {right.text}."
        )
    if not _same(left.value, right.value):
        values = " and ".join("none" if value is None else f"{value:.6g}" for value in (left.value, right.value))
        return f"The objectives are not shown, as they depend on the {left.name}, which differs: {values}."
    return ""


def _same(left: float | None, right: float | None) -> bool:
    """Whether two numbers are the same to the digits that are shown."""
    if left is None or right is None:
        return left is right
    return f"{left:.6g}" == f"{right:.6g}"
