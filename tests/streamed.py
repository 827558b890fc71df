"""Data, models and measures for the tests of streams and large fits."""

import numpy as np

from roadict import ROAD
from roadict.coders.registry import encode
from roadict.synthetic import planted

M, K = 12, 16
ALPHA = 0.2
TRUTH = planted(6000, M, K, sparsity=2, snr_db=20, random_state=1)


def lasso(**parameters):
    return ROAD(K, formulation="lasso", alpha=ALPHA, random_state=0, **parameters)


def share_found(model, truth):
    return (np.abs(truth.dictionary @ model.components_.T).max(axis=1) > 0.98).mean()


def mean_objective(model, data):
    codes = encode(data, None, model.components_, algorithm="lasso", alpha=ALPHA)
    return (np.sum((data - codes @ model.components_) ** 2) / 2 + ALPHA * np.abs(codes).sum()) / len(data)
