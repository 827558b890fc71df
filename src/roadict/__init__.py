"""Dictionary learning by rank-one atomic decomposition (ROAD)."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["ROAD", "AlternatingDictionaryLearning", "Checkpoint", "SparseCoder", "__version__", "load"]

if TYPE_CHECKING:
    from roadict.checkpoints.schedule import Checkpoint
    from roadict.estimators import ROAD, AlternatingDictionaryLearning, SparseCoder, load


def __getattr__(name: str) -> Any:
    """Import the estimators on first use, so that ``import roadict`` stays light."""
    if name in ("AlternatingDictionaryLearning", "ROAD", "SparseCoder", "load"):
        from roadict import estimators

        return getattr(estimators, name)
    if name == "Checkpoint":
        from roadict.checkpoints.schedule import Checkpoint

        return Checkpoint
    raise AttributeError(f"module 'roadict' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, those not yet imported included."""
    return sorted(__all__)
