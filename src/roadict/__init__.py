"""Dictionary learning by rank-one atomic decomposition (ROAD)."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["ROAD", "AlternatingDictionaryLearning", "SparseCoder", "__version__", "load"]

if TYPE_CHECKING:
    from roadict.estimators import ROAD, AlternatingDictionaryLearning, SparseCoder, load


def __getattr__(name: str) -> Any:
    """Import the estimators on first use, so that ``import roadict`` stays light."""
    if name in ("AlternatingDictionaryLearning", "ROAD", "SparseCoder", "load"):
        from roadict import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'roadict' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, those not yet imported included."""
    return sorted(__all__)
