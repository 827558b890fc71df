"""Updates by name, with their parameters and penalties."""

from collections.abc import Callable
from dataclasses import dataclass

from roadict.updates.blotless import blotless
from roadict.updates.ksvd import approximate_ksvd, ksvd
from roadict.updates.mod import mod
from roadict.updates.sequential import absolute_penalty, adaptive_penalty, consistent_sequential, sequential
from roadict.updates.simco import simco
from roadict.updates.sparse import Array


@dataclass(frozen=True)
class Update:
    """A dictionary update.

    Attributes
    ----------
    step : callable
        ``step(data, dictionary, codes, **arguments) -> dictionary, codes``.
    parameters : tuple of str
        Names of the keyword parameters of step.
    penalty : callable or None
        ``penalty(codes, alpha)``, added to half the squared error by updates that choose the support of the codes;
        None: the support is fixed and a coder is needed.
    constraints : tuple of str
        Which of "positive_code" and "positive_dict" step can respect; keyword parameters of it.
    """

    step: Callable[..., tuple[Array, Array]]
    parameters: tuple[str, ...] = ()
    penalty: Callable[[Array, float], float] | None = None
    constraints: tuple[str, ...] = ()


BOTH = ("positive_code", "positive_dict")

UPDATES = {
    "mod": Update(mod, constraints=BOTH),
    "ksvd": Update(ksvd, constraints=BOTH),
    "approximate-ksvd": Update(approximate_ksvd, constraints=BOTH),
    "simco": Update(simco, ("ridge",), constraints=("positive_code",)),
    "blotless": Update(blotless),
    "sequential": Update(sequential, ("alpha",), absolute_penalty, BOTH),
    "consistent-sequential": Update(consistent_sequential, ("alpha",), adaptive_penalty, BOTH),
}
