"""Many fits that share a GPU."""

from collections.abc import Iterable
from concurrent.futures import Executor

from numpy.typing import ArrayLike

from roadict.estimators.road import ROAD
from roadict.ranks.comm import alone
from roadict.runs.driving import drive_all, observe


def fit_all(models: Iterable[ROAD], data: Iterable[ArrayLike], *, executor: Executor | None = None) -> list[ROAD]:
    """Fit many models concurrently; runs of the first one's shape and form share a GPU batch.

    A small problem leaves most of a GPU idle: a hundred in a batch take little longer than one. In a process group,
    every process fits its own models.

    Parameters
    ----------
    models : iterable of ROAD
        Distinct objects with ``engine="cuda"`` and ``checkpoint=None``; ``verbose`` is ignored.
    data : iterable of arrays of shape (n_samples, n_features)
        One for every model.
    executor : concurrent.futures.Executor, default=None
        Runs the exact finish of one fit while the others continue. None: it runs in this process.

    Returns
    -------
    list of ROAD
        The fitted models. The first error is raised after all fits have ended.

    Examples
    --------
    >>> from roadict import ROAD, fit_all
    >>> from roadict.synthetic import planted
    >>> data = [planted(60, 6, 8, sparsity=2, random_state=seed).data for seed in (0, 1)]
    >>> models = [ROAD(8, rho=10.0, n_init=1, max_iter=3, tol=0, random_state=0) for _ in data]
    >>> [model.n_iter_ for model in fit_all(models, data)]  # engine="cuda" on a machine with a GPU
    [3, 3]
    """
    models, data = list(models), list(data)
    for model in models:
        if not isinstance(model, ROAD):
            raise ValueError(f"{model!r} is not a ROAD estimator; fit others one after the other")
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
    with alone():  # the fits advance in an order of their own, in which ranks would wait for each other
        drive_all(
            observe(
                model._guarded(model._fitting(X, watched=model.callback is not None, pool=pool, executor=executor)),
                model.callback,
            )
            for model, X in zip(models, data, strict=True)
        )
    return models
