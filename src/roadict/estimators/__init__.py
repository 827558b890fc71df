"""The scikit-learn estimators of roadict."""

from roadict.estimators.alternating import AlternatingDictionaryLearning
from roadict.estimators.batch import fit_all
from roadict.estimators.files import load
from roadict.estimators.road import ROAD
from roadict.estimators.road_cv import ROADCV
from roadict.estimators.sparse_coder import SparseCoder
from roadict.estimators.stability import atom_stability

__all__ = ["ROAD", "ROADCV", "AlternatingDictionaryLearning", "SparseCoder", "atom_stability", "fit_all", "load"]
