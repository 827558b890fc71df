"""Coders by name: their parameters, the defaults of these, ``encode`` and ``encode_sparse`` to call any of them."""

import math
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from roadict.blas import one_blas_thread
from roadict.checks import one_of, warn_user
from roadict.coders.basis_pursuit import basis_pursuit
from roadict.coders.cosamp import cosamp
from roadict.coders.half import half
from roadict.coders.lasso import lasso
from roadict.coders.mp import mp
from roadict.coders.omp import omp
from roadict.coders.scaling import ScaledProblem, rescale, scale_problem
from roadict.coders.subspace_pursuit import subspace_pursuit
from roadict.coders.threshold import threshold
from roadict.wording import agree, of

Array = NDArray[np.floating]

CODER_PARAMETERS: dict[str, tuple[str, ...]] = {
    "omp": ("n_nonzero_coefs", "epsilon"),
    "mp": ("n_nonzero_coefs", "epsilon"),
    "sp": ("n_nonzero_coefs",),
    "cosamp": ("n_nonzero_coefs",),
    "lasso": ("alpha", "start"),
    "basis-pursuit": ("epsilon",),
    "half": ("alpha", "n_nonzero_coefs", "start"),
    "threshold": ("alpha",),
}
"""Parameters of each coder; ``start`` is internal."""

ALIASES = {"lasso_cd": "lasso", "lasso_lars": "lasso"}
"""scikit-learn's names of coders that solve the same problem; "omp" and "threshold" have the same names."""
GREEDY = ("omp", "mp", "sp", "cosamp")
"""Coders that compare atoms at unit norm."""
NONNEGATIVE = ("omp", "lasso", "basis-pursuit", "threshold")
"""Coders with a form for codes that are not negative."""
REMEDIES = {
    "lasso": "pass a larger alpha",
    "basis-pursuit": "pass a larger epsilon, or remove near-duplicate atoms",
    "half": "pass a larger alpha or fewer n_nonzero_coefs",
}
UNMET = 1e-5
"""Share of a sample's norm by which nonnegative basis pursuit may exceed its bound without a warning; float32 does."""
DEFAULT_ALPHA = 0.1
"""Default weight, relative to the smallest one that makes all codes of a sample zero."""


def coder_named(parameter: str, value: Any, *more: str) -> str:
    """Return the coder of a name, which may be scikit-learn's; ``more`` describes other valid values in the error.

    Examples
    --------
    >>> coder_named("algorithm", "lasso_cd")
    'lasso'
    >>> coder_named("algorithm", "lars")
    Traceback (most recent call last):
    ...
    ValueError: algorithm='lars' has no equal here; use 'omp', which takes n_nonzero_coefs too, or 'lasso'
    """
    if isinstance(value, str):
        if value == "lars":
            raise ValueError(
                f"{parameter}={value!r} has no equal here; use 'omp', which takes n_nonzero_coefs too, or 'lasso'"
            )
        value = ALIASES.get(value, value)
    one_of(parameter, value, CODER_PARAMETERS, *more)
    name: str = value
    return name


def reject_unused(algorithm: str, **arguments: Any) -> None:
    """Raise ValueError for arguments that the algorithm does not use, or that exclude each other.

    Examples
    --------
    >>> reject_unused("omp", n_nonzero_coefs=3, alpha=0.1)
    Traceback (most recent call last):
    ...
    ValueError: alpha=0.1 is not used by algorithm="omp", which takes n_nonzero_coefs and epsilon; leave it out
    """
    accepted = CODER_PARAMETERS[algorithm]
    for name, value in arguments.items():
        if value is not None and name not in accepted:
            shown = "start" if name == "start" else f"{name}={value!r}"
            public = " and ".join(other for other in accepted if other != "start")
            raise ValueError(f'{shown} is not used by algorithm="{algorithm}", which takes {public}; leave it out')
    if algorithm == "half" and arguments.get("alpha") is not None and arguments.get("n_nonzero_coefs") is not None:
        raise ValueError(
            f"alpha={arguments['alpha']!r} and n_nonzero_coefs={arguments['n_nonzero_coefs']!r} both set the sparsity "
            'of algorithm="half"; leave one of them out'
        )


def reject_positive(algorithm: str) -> None:
    """Raise ValueError for an algorithm without a form for codes that are not negative.

    Examples
    --------
    >>> reject_positive("mp")
    Traceback (most recent call last):
    ...
    ValueError: positive_code=True is not possible with "mp"; use "omp", "lasso", "basis-pursuit" or "threshold"
    """
    if algorithm not in NONNEGATIVE:
        *others, last = (f'"{name}"' for name in NONNEGATIVE)
        raise ValueError(f'positive_code=True is not possible with "{algorithm}"; use {", ".join(others)} or {last}')


def encode(
    data: Array,
    observed: NDArray[np.bool_] | None,
    dictionary: Array,
    *,
    algorithm: str,
    n_nonzero_coefs: int | None = None,
    alpha: float | None = None,
    epsilon: ArrayLike | None = None,
    start: Array | None = None,
    positive: bool = False,
    n_jobs: int | None = None,
    warn: bool = True,
) -> Array:
    """Code samples from their observed entries.

    The codes of a sample do not depend on n_jobs, the unit of the data or (up to rounding) the other samples.

    Parameters
    ----------
    data : array of shape (n_samples, n_features)
        float32 or float64, as is the result; "omp" and "lasso" also compute in it, the others in float64.
    observed : bool array like data, or None
    dictionary : array of shape (n_components, n_features)
        Atoms of any norm; zero atoms are never used.
    algorithm : {"omp", "mp", "sp", "cosamp", "lasso", "basis-pursuit", "half", "threshold"}
        ``CODER_PARAMETERS`` lists which of the following it uses; the others must be None.
    n_nonzero_coefs : int or None
        Atoms per sample, limited by the observed features and the dictionary. None: as many as epsilon requires;
        without epsilon, a tenth of the observed features, at least one.
    alpha : float or None
        Weight of the sparsity term. None: 0.1 times the smallest one that makes all codes of the sample zero ("half":
        the weight that zeroes a single coefficient below 0.1 times the sample's largest correlation).
    epsilon : float, array of shape (n_samples,) or None
        Bound on the relative error of every sample over its observed entries. None: no bound, or 0 for
        "basis-pursuit".
    start : array of shape (n_samples, n_components) or None
        Codes to start from.
    positive : bool
        Whether codes must not be negative; only for the algorithms in ``NONNEGATIVE``.
    n_jobs : int or None
        Threads. None: all cores.
    warn : bool
        Whether to warn of samples that were not coded to the tolerance; fits code many times, and need not be exact.

    Returns
    -------
    array of shape (n_samples, n_components)
    """
    settings: dict[str, Any] = {"n_nonzero_coefs": n_nonzero_coefs, "alpha": alpha, "epsilon": epsilon, "start": start}
    settings["positive"] = positive
    codes: Array = _encode(data, observed, dictionary, algorithm, n_jobs, warn, sparse=False, **settings)
    return codes


def encode_sparse(
    data: Array,
    observed: NDArray[np.bool_] | None,
    dictionary: Array,
    *,
    algorithm: str,
    n_jobs: int | None = None,
    warn: bool = True,
    **settings: Any,
) -> scipy.sparse.csr_array:
    """Code like ``encode``, but return a CSR array; there is no dense one in between."""
    return _encode(data, observed, dictionary, algorithm, n_jobs, warn, sparse=True, **settings)


@one_blas_thread()
def _encode(
    data: Array,
    observed: NDArray[np.bool_] | None,
    dictionary: Array,
    algorithm: str,
    n_jobs: int | None,
    warn: bool,
    sparse: bool,
    n_nonzero_coefs: int | None = None,
    alpha: float | None = None,
    epsilon: ArrayLike | None = None,
    start: Array | None = None,
    positive: bool = False,
) -> Any:
    if positive:
        reject_positive(algorithm)
    reject_unused(algorithm, n_nonzero_coefs=n_nonzero_coefs, alpha=alpha, epsilon=epsilon, start=start)
    dtype = data.dtype if algorithm in ("omp", "lasso") else np.float64
    if algorithm in GREEDY:
        problem = scale_problem(data, observed, dictionary, per_atom=True, dtype=dtype)
        counts = _sparsity(problem, n_nonzero_coefs, epsilon is not None, capped=algorithm != "mp")
        if algorithm in ("sp", "cosamp"):
            return (subspace_pursuit if algorithm == "sp" else cosamp)(problem, counts, n_jobs, sparse)
        bounds = _bounds(problem, epsilon)
        if algorithm == "mp":
            return mp(problem, counts, bounds, n_jobs, sparse)
        return omp(problem, counts, bounds, n_jobs, sparse, positive)
    problem = scale_problem(data, observed, dictionary, per_atom=False, dtype=dtype)
    if algorithm == "threshold":
        return threshold(problem, _weights(problem, alpha), n_jobs, sparse, positive)
    if algorithm == "half":
        counts = _sparsity(problem, n_nonzero_coefs or 0, False)
        codes, n_unconverged = half(problem, _half_weights(problem, alpha), counts, start, n_jobs, sparse)
    elif algorithm == "lasso":
        codes, n_unconverged = lasso(problem, _weights(problem, alpha), start, n_jobs, sparse, positive)
    else:
        bounds = _bounds(problem, epsilon)
        codes, n_unconverged = basis_pursuit(problem, bounds, n_jobs, sparse, positive)
        if positive and warn:
            _warn_unless_met(problem, dictionary, codes, bounds)
    if n_unconverged and warn:
        share = f"{of(n_unconverged, len(data), 'sample')} {agree(n_unconverged, 'was', 'were')}"
        _warn(f'{share} not coded to the tolerance of algorithm="{algorithm}"; {REMEDIES[algorithm]}')
    return codes


def _warn(text: str) -> None:
    from sklearn.exceptions import ConvergenceWarning  # a second, which a process that only compiles need not spend

    warn_user(text, ConvergenceWarning)


def _warn_unless_met(problem: ScaledProblem, dictionary: Array, codes: Any, bounds: Array) -> None:
    """Warn of samples that no nonnegative codes reproduce within their bounds."""
    residual = problem.data - codes @ dictionary
    if problem.observed.size:
        residual = np.where(problem.observed, residual, 0)
    sizes = [np.linalg.norm(rescale(rows, -problem.exponents[:, None]), axis=1) for rows in (residual, problem.data)]
    n_unmet = int((sizes[0] > (bounds + UNMET) * sizes[1]).sum())
    if n_unmet:
        _warn(
            f"{of(n_unmet, len(bounds), 'sample')} {agree(n_unmet, 'has', 'have')} no nonnegative codes within "
            f"epsilon={bounds.max():g}; {agree(n_unmet, 'it is', 'they are')} coded by nonnegative least "
            "squares; pass a larger epsilon, or positive_code=False"
        )


def default_sparsity(n_observed: Any) -> Any:
    """Atoms for a sample of so many observed features, if nothing bounds them; a number or an array."""
    return np.maximum(1, n_observed // 10)


def _sparsity(problem: ScaledProblem, requested: int | None, bounded: bool, capped: bool = True) -> NDArray[np.integer]:
    """Number of atoms for every sample; ``capped``: at most its number of observed features."""
    seen, n_atoms = problem.n_observed, len(problem.rows)
    limit = np.minimum(seen, n_atoms) if capped else np.full(len(seen), n_atoms)
    default = limit if bounded else default_sparsity(seen)
    wanted = default if requested is None else np.full(len(seen), requested)
    counts: NDArray[np.integer] = np.minimum(wanted, limit).astype(np.int64)
    return counts


def _bounds(problem: ScaledProblem, epsilon: ArrayLike | None) -> Array:
    bounds = np.empty(len(problem.data))
    bounds[:] = 0.0 if epsilon is None else epsilon
    return bounds


def _weights(problem: ScaledProblem, alpha: float | None) -> Array:
    """Return the weight of every sample in the scaled problem; negative: minus its share of the one that zeroes all."""
    if alpha is None:
        return np.full(len(problem.data), -DEFAULT_ALPHA)
    return rescale(np.full(len(problem.data), float(alpha)), -(problem.exponents + problem.atom_exponents[0]))


def _half_weights(problem: ScaledProblem, alpha: float | None) -> Array:
    """Return the same for the penalty Σ√|codes| of "half"."""
    if alpha is None:
        return np.full(len(problem.data), -DEFAULT_ALPHA)
    shifts, odd = np.divmod(-(3 * problem.exponents + problem.atom_exponents[0]), 2)
    return rescale(alpha * np.where(odd, math.sqrt(2), 1.0), shifts)
