"""Many fits that share a GPU."""

from collections.abc import Sequence
from concurrent.futures import Executor

from numpy.typing import ArrayLike

from roadict.estimators.road import ROAD
from roadict.runs.driving import drive_all, observed


def fit_all(models: Sequence[ROAD], data: Sequence[ArrayLike], *, executor: Executor | None = None) -> Sequence[ROAD]:
    """Fit many models at once; runs of the first one's shape and form share a batch on the GPU.

    A small problem leaves most of a GPU idle: a hundred at once take little longer than one.

    Parameters
    ----------
    models : sequence of ROAD
        Different objects, with ``engine="cuda"`` and without a checkpoint.
    data : sequence of arrays of shape (n_samples, n_features)
        One for every model.
    executor : concurrent.futures.Executor, default=None
        Carries out the exact finish of fits, so that the others need not wait for it. None: this process does.

    Returns
    -------
    sequence of ROAD
        The models, fitted. The first failure is raised, once all fits have ended.

    Examples
    --------
    >>> from roadict import ROAD, fit_all
    >>> from roadict.synthetic import planted
    >>> data = [planted(60, 6, 8, sparsity=2, random_state=seed).data for seed in (0, 1)]
    >>> models = [ROAD(8, rho=10.0, n_init=1, max_iter=3, tol=0, random_state=0) for _ in data]
    >>> [model.n_iter_ for model in fit_all(models, data)]  # engine="cuda" on a machine with a GPU
    [3, 3]
    """
    if len(models) != len(data):
        raise ValueError(f"{len(models)} models and {len(data)} arrays of data; pass one for each")
    if len({id(model) for model in models}) < len(models):
        raise ValueError("a model occurs twice; pass different objects, for example clones")
    if any(model.checkpoint is not None for model in models):
        raise ValueError("fits that share a GPU write no checkpoints; pass checkpoint=None, or fit one after the other")
    if not models:
        return models
    from roadict.engines.gpu.batch import Pool

    pool = Pool(len(models))
    drive_all(
        observed(model._fitting(X, watched=model.callback is not None, pool=pool, executor=executor), model.callback)
        for model, X in zip(models, data, strict=True)
    )
    return models
