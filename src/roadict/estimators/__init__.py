"""The scikit-learn face of roadict."""

from roadict.estimators.road import ROAD, load
from roadict.estimators.sparse_coder import SparseCoder

__all__ = ["ROAD", "SparseCoder", "load"]
