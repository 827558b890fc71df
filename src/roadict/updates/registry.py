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
    """

    step: Callable[..., tuple[Array, Array]]
    parameters: tuple[str, ...] = ()
    penalty: Callable[[Array, float], float] | None = None


UPDATES = {
    "mod": Update(mod),
    "ksvd": Update(ksvd),
    "approximate-ksvd": Update(approximate_ksvd),
    "simco": Update(simco, ("ridge",)),
    "blotless": Update(blotless),
    "sequential": Update(sequential, ("alpha",), absolute_penalty),
    "consistent-sequential": Update(consistent_sequential, ("alpha",), adaptive_penalty),
}
