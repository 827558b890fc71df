"""Updates by name, and what the loop must know of each."""

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
    """One way to improve a dictionary.

    Attributes
    ----------
    step : callable
        ``step(data, dictionary, codes, **arguments) -> dictionary, codes``.
    takes : tuple of str
        Names of the keyword arguments of step.
    penalty : callable or None
        ``penalty(codes, alpha)``, what the step adds to half the squared error, for updates that find the support
        of their codes themselves; None: the support is given and a coder is needed.
    """

    step: Callable[..., tuple[Array, Array]]
    takes: tuple[str, ...] = ()
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
