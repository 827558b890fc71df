"""ROAD with a number of atoms that is chosen by hidden entries."""

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from roadict import checks
from roadict.checks import warn_user
from roadict.engines.registry import engine_name
from roadict.estimators.advice import dense_advice
from roadict.estimators.known import check_reachable, check_width
from roadict.estimators.learner import Coding, Learner
from roadict.estimators.road import ROAD
from roadict.estimators.weights import used_samples
from roadict.precompile import kernels_of_choice, prepare
from roadict.progress.stages import Progress, Stages
from roadict.progress.terminal import PlainProgress, silent
from roadict.ranks.comm import SERIAL, current
from roadict.road.expected import with_shares
from roadict.road.hidden import SHARE
from roadict.road.noise import MIN_HIDDEN
from roadict.road.number import NumberPath, choose_number, coarse_numbers
from roadict.road.plan import Parameters
from roadict.runs.driving import Fitting
from roadict.runs.snapshot import Callback
from roadict.seeds import RandomStateLike, seed_sequence
from roadict.wording import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.floating]

MIN_SAMPLES = 10
MIN_OBSERVED = 2
"""Minimum number of observed entries per sample, on average: one is hidden, and predicted from the others."""
FEW_OBSERVED = 4
"""Number of these below which the choice is uncertain."""
CHOICE = 0.8
"""Share of the whole that the choice takes, about; by `benchmarks/progress.py`."""
FORMULATIONS = ("constrained", "lasso")
FINAL_FIT = (
    *("formulation", "positive_code", "positive_dict", "fixed_atoms"),
    *("max_iter", "tol", "missing_values", "engine", "callback", "verbose", "n_jobs"),
    *("transform_algorithm", "transform_alpha", "transform_n_nonzero_coefs"),
)
"""Parameters that are passed on to ``ROAD``."""


class ROADCV(Learner):
    """ROAD with the number of atoms chosen by cross-validation: by how well hidden entries are predicted.

    For every number, atoms are learned from part of the entries of every sample, in a short run, and predict the
    others. Too few atoms cannot represent the samples; too many adapt to the noise. The smallest number whose error is
    within one standard error of the best, paired by sample, or within 0.2 % of the size of the hidden entries, is
    chosen, and ``ROAD`` is fitted with it to all entries, which also finds the noise level.

    Parameters
    ----------
    n_components : list, tuple, array or range of int, or int, default=None
        Numbers of atoms to try. None: a search from 1 to 4 times the number of features, with at least 4 samples per
        atom; it tries about a dozen numbers.
    n_splits : int, default=2
        How often entries are hidden, with another start each time. 1 takes half the time.
    formulation : {"constrained", "lasso"}, default="constrained"
        Of the final fit, as for ``ROAD``; its bound or weight follows from the data.
    positive_code, positive_dict : bool, default=False
        Whether codes, or entries of atoms, must not be negative, as for ``ROAD``.
    fixed_atoms : array of shape (n_fixed, n_features), default=None
        Atoms that are known, as for ``ROAD``; they count in n_components.
    max_iter : int, default=2000
        Maximum number of iterations per start of the final fit.
    tol : float, default=1e-4
        Of the final fit, as for ``ROAD``.
    missing_values : None or np.nan, default=None
        np.nan: NaN entries of X are unobserved.
    engine : {"auto", "numba", "cuda", "reference"}, default="auto"
        As for ``ROAD``. "cuda" makes one run at a time.
    transform_algorithm : {"lasso", "omp", "mp", "sp", "cosamp", "basis-pursuit", "half", "threshold"}, default="lasso"
        Coder of ``transform``, as for ``ROAD``.
    transform_alpha : float, default=None
        Weight of the sparsity term in ``transform``, as for ``ROAD``. None: ``transform_alpha_``.
    transform_n_nonzero_coefs : int, default=None
        Nonzero codes per sample in ``transform``, as for ``ROAD``.
    callback : callable, default=None
        As for ``ROAD``: called after every iteration of the final fit.
    verbose : int, default=0
        1: progress of the choice, and a progress line of the final fit, on standard error. 2: a line per iteration.
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
        Seed of the hidden entries and of the starts. The same integer gives the same result for any n_jobs.
    n_jobs : int, default=None
        Number of concurrent runs, in threads, and threads of the final fit. None: all cores.

    Attributes
    ----------
    n_components_ : int
        The number chosen.
    cv_results_ : dict
        Arrays with one entry per number tried, smallest first: ``n_components``; ``hidden_error``, the sum of the
        absolute errors of the predicted entries over that of the entries; ``excess`` over the smallest hidden error,
        paired by sample, and its ``standard_error``; ``epsilon`` and ``nonzeros``, the relative data error and the mean
        number of nonzero codes per sample of the sparsest codes that predict well.
    flat_ : bool
        Whether the largest number tried does not predict clearly worse (two standard errors) than the chosen one. Then
        the true number is larger than all that were tried, or there is none, as in most real data.
    components_ : array of shape (n_components, n_features)
        Atoms of the final fit. This and the following attributes are those of ``ROAD``.
    codes_ : array of shape (n_samples, n_components)
        Codes of the fit.
    epsilon_ : float or None
        Bound on the relative error, from the data ("constrained").
    epsilon_path_ : EpsilonPath or None
        How the noise level was chosen.
    n_iter_ : int
        Iterations of the returned fit.
    history_ : History
        Measures of every iteration; ``to_frame()`` and ``plot()``.
    stop_reason_ : {"converged", "max_iter", "callback", "non-finite", "interrupted"}
        "interrupted": saved by ``roadict learn`` at Ctrl-C.
    stationarity_ : float or None
    exact_ : bool
        Whether the exact finish produced the fit.
    n_starts_ : int
        Number of starts that were run.
    n_starts_agreed_ : int
        Number of these that found the returned atoms.
    objective_ : float
        ``Σ|codes_|``; for "lasso" plus the squared error over 2 alpha.
    error_ : float
        Relative data error of ``codes_`` over the observed entries.
    rho_ : float
        Last value of the penalty.
    atom_usage_ : array of shape (n_components,)
        Fraction of the samples that use each atom.
    transform_alpha_ : float
        Default weight of ``transform``.
    n_features_in_ : int

    Notes
    -----
    A search takes about five times as long as ``ROAD`` with the chosen number. Every concurrent run holds about two
    arrays of atoms × features × samples; at most 25 samples per atom are used. The error of real data often falls
    slowly and without a minimum: then read off ``plot()`` how many atoms are worth their cost.

    The final fit is that of ``ROAD(n_components_)`` with the same parameters and random_state. In a process group of
    torch.distributed, use ``roadict.ranks.alone()``, or ``ROAD`` with a number.

    Examples
    --------
    >>> from roadict import ROADCV
    >>> from roadict.synthetic import planted
    >>> X = planted(300, 8, 12, sparsity=2, snr_db=30, random_state=0).data
    >>> model = ROADCV([8, 10, 12, 16], n_splits=1, random_state=0).fit(X)
    >>> model.n_components_, model.components_.shape
    (12, (12, 8))
    """

    n_components: Any
    transform_alpha_: float
    checkpoint = None
    _progress: Progress | None = None
    """Set by programs that show the progress of the choice themselves."""

    def __init__(
        self,
        n_components: Sequence[int] | NDArray[np.integer] | int | None = None,
        *,
        n_splits: int = 2,
        formulation: str = "constrained",
        positive_code: bool = False,
        positive_dict: bool = False,
        fixed_atoms: ArrayLike | None = None,
        max_iter: int = 2000,
        tol: float = 1e-4,
        missing_values: float | None = None,
        engine: str = "auto",
        transform_algorithm: str = "lasso",
        transform_alpha: float | None = None,
        transform_n_nonzero_coefs: int | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_splits = n_splits
        self.formulation = formulation
        self.positive_code = positive_code
        self.positive_dict = positive_dict
        self.fixed_atoms = fixed_atoms
        self.max_iter = max_iter
        self.tol = tol
        self.missing_values = missing_values
        self.engine = engine
        self.transform_algorithm = transform_algorithm
        self.transform_alpha = transform_alpha
        self.transform_n_nonzero_coefs = transform_n_nonzero_coefs
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Choose the number of atoms, then learn atoms and codes.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            One sample per row.
        y : ignored
        sample_weight : float or array of shape (n_samples,), default=None
            Weights of the samples in the choice and in the final fit, as for ``ROAD``.

        Returns
        -------
        self
        """
        return self._fit(X, sample_weight)

    def plot(self) -> "Figure":
        """Plot the hidden error over the number of atoms, with one standard error and the chosen number.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from roadict.drawing.selection import number_figure

        check_is_fitted(self)
        numbers, errors, deviations = (
            self.cv_results_[name] for name in ("n_components", "hidden_error", "standard_error")
        )
        return number_figure(numbers, errors, deviations, self.n_components_, self.flat_)

    def _fitting(self, X: ArrayLike, sample_weight: ArrayLike | None = None, *, watched: bool) -> Fitting[None]:
        """Choose, then fit ROAD step by step and take over its attributes."""
        if current().size > 1:
            raise ValueError(
                f"ROADCV runs in one process, not on {current().size} ranks; fit it within roadict.ranks.alone(), or "
                "use ROAD with a number of atoms"
            )
        self._check_parameters()
        data, observed = self._validate(X, reset=True)
        given = checks.sample_weights(sample_weight, len(data), data.dtype)
        data, observed, weights, _ = used_samples(data, observed, given, SERIAL)
        self._check_data(data, observed, "" if weights is None else " of weight above zero")
        numbers, parameters = self._numbers(), self._parameters()
        check_width(parameters, data.shape[1], None if numbers is None else min(numbers))
        check_reachable(data, parameters, weights=weights, warn=False)  # the final fit warns
        n_samples, n_features = data.shape
        largest = max(numbers or coarse_numbers(n_samples, n_features, parameters.constraints.n_fixed))
        engine = engine_name(self.engine, n_samples, n_features, largest)
        prepare(kernels_of_choice(self.formulation, bool(self.positive_code), engine), data.dtype)
        seed = seed_sequence(self.random_state)
        whole = Stages({"choice": CHOICE, "fit": 1 - CHOICE})
        report = self._progress or (PlainProgress("choosing n_components") if self.verbose else silent)
        progress = whole.part("choice", report)
        path = choose_number(
            data, observed, numbers, self.n_splits, self.engine, self.n_jobs, seed, progress, weights, parameters
        )
        road = self._road(int(path.n_components[path.chosen]), seed)
        road._kept = path.kept
        fitting = road._fitting(X, sample_weight, watched=watched)
        yield from with_shares(fitting, lambda snapshot: whole.share("fit", snapshot.share))
        self._set_choice(path)
        found = {name: value for name, value in vars(road).items() if name.endswith("_") and name[0] != "_"}
        self.__dict__.update(found)

    def _road(self, n_components: int | None, seed: RandomStateLike = None) -> ROAD:
        """Return the estimator of the final fit."""
        return ROAD(n_components, random_state=seed, **{name: getattr(self, name) for name in FINAL_FIT})

    def _parameters(self) -> Parameters:
        """Return the constraints as parameters of a fit."""
        own = self._road(None)._parameters()
        return Parameters(positive_code=own.positive_code, positive_dict=own.positive_dict, fixed_atoms=own.fixed_atoms)

    def final_road(self) -> ROAD:
        """Return the final fit as a ``ROAD`` model."""
        check_is_fitted(self)
        road = self._road(self.n_components_, self.random_state)
        for name, value in vars(self).items():
            if name.endswith("_") and name not in ("n_components_", "flat_", "cv_results_"):
                setattr(road, name, value)
        return road

    @property
    def dense_advice(self) -> str:
        """What to do about codes with nearly as many nonzeros per sample as the data have dimensions; "" if sparse."""
        if not dense_advice(self):
            return ""
        used, dimensions = float(self.atom_usage_.sum()), min(self.components_.shape)
        given = "epsilon" if self.formulation == "constrained" else "alpha"
        return (
            f"samples use {used:.1f} of {dimensions} dimensions, so the codes are hardly sparse: "
            f"pass smaller n_components, or use ROAD with a larger {given}"
        )

    def _set_choice(self, path: NumberPath) -> None:
        self.n_components_, self.flat_ = int(path.n_components[path.chosen]), path.flat
        self.cv_results_ = {name: getattr(path, name) for name in path.COLUMNS}

    def _transform_coding(self) -> Coding:
        return Coding(
            self.transform_algorithm, self.transform_n_nonzero_coefs, self.transform_alpha, self.transform_alpha_
        )

    def _check_parameters(self) -> None:
        checks.one_of("formulation", self.formulation, FORMULATIONS)
        self._road(None)._check_parameters()
        checks.whole_number("n_splits", self.n_splits)
        self._numbers()

    def _numbers(self) -> list[int] | None:
        """Return the numbers to try, or None for a search."""
        given = self.n_components
        if given is None:
            return None
        if isinstance(given, Integral):
            return [checks.whole_number("n_components", given)]
        if not isinstance(given, list | tuple | range | np.ndarray) or np.ndim(given) != 1:
            raise ValueError(
                f"n_components={given!r} must be a list, array or range of whole numbers, or None for a search"
            )
        if len(given) == 0:
            raise ValueError(f"n_components={given!r} is empty; pass at least one number, or None for a search")
        return [checks.whole_number(f"n_components[{index}]", number) for index, number in enumerate(given)]

    def _check_data(self, data: Array, observed: NDArray[np.bool_] | None, counted: str = "") -> None:
        """Refuse data without enough entries to hide, or with nothing to predict; warn if entries are few."""
        n_samples, n_features = data.shape
        entries = data.size if observed is None else int(observed.sum())
        if n_samples < MIN_SAMPLES:
            samples = plural(n_samples, "sample") + counted
            raise ValueError(
                f"X has {samples} (n_samples = {n_samples}); ROADCV needs at least {MIN_SAMPLES} to compare numbers of "
                "atoms: pass more, or use ROAD with a number"
            )
        largest = max(self._numbers() or [1])
        if largest > n_samples:
            raise ValueError(
                f"n_components={largest} is more than the {n_samples} samples{counted}, which could then be atoms "
                "themselves; pass smaller numbers or more samples"
            )
        if entries < MIN_OBSERVED * n_samples:
            raise ValueError(
                f"samples have {entries / n_samples:.3g} observed entries on average (n_features = {n_features}); "
                f"ROADCV hides some and needs at least {MIN_OBSERVED}: pass more features, or use ROAD with a number"
            )
        values = data if observed is None else data[observed]
        if np.ptp(values) == 0:
            raise ValueError(
                f"all observed entries of X are {values.flat[0]:g}: any number of atoms predicts them; pass data that "
                "vary, or use ROAD with a number"
            )
        hidden = round(max(n_samples, SHARE * entries))
        if entries < FEW_OBSERVED * n_samples or hidden < MIN_HIDDEN:
            warn_user(
                f"about {hidden} of {entries} entries are hidden, {entries / n_samples:.3g} observed per sample; the "
                f"chosen number of atoms is uncertain below {MIN_HIDDEN} hidden entries or {FEW_OBSERVED} per sample: "
                "pass more samples or features"
            )
