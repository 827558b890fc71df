"""Dictionary learning by rank-one atomic decomposition (ROAD)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"
__all__ = [
    "ROAD",
    "ROADCV",
    "AlternatingDictionaryLearning",
    "Checkpoint",
    "SparseCoder",
    "__version__",
    "atom_stability",
    "fit_all",
    "load",
]
_MODULES = ("metrics", "pictures", "plotting", "prox", "ranks", "synthetic")

if TYPE_CHECKING:
    from roadict.checkpoints.schedule import Checkpoint
    from roadict.estimators import (
        ROAD,
        ROADCV,
        AlternatingDictionaryLearning,
        SparseCoder,
        atom_stability,
        fit_all,
        load,
    )


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that ``import roadict`` is fast."""
    if name in _MODULES:
        return import_module(f"roadict.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'roadict' has no attribute {name!r}")
    return getattr(import_module(f"roadict.{'checkpoints.schedule' if name == 'Checkpoint' else 'estimators'}"), name)


def __dir__() -> list[str]:
    """List the public names, including those not yet imported."""
    return sorted([*__all__, *_MODULES])
