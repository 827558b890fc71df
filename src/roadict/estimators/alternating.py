"""AlternatingDictionaryLearning: the two-stage methods as a scikit-learn estimator."""

import os
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from roadict import checks
from roadict.checkpoints.schedule import Checkpoint, open_checkpoints
from roadict.checks import warn_user
from roadict.coders.registry import ALIASES, CODER_PARAMETERS, coder_named, reject_positive
from roadict.constraints import Constraints
from roadict.estimators.consistency import describe_parameters, describe_start, shared_seed
from roadict.estimators.known import check_reachable
from roadict.estimators.learner import Coding, Learner
from roadict.linalg import of_order_one, unit_rows
from roadict.ranks.comm import SERIAL
from roadict.road.penalty import auto_alpha
from roadict.road.plan import sample_norm
from roadict.runs.driving import Fitting
from roadict.runs.loop import Rule, View
from roadict.runs.snapshot import Callback
from roadict.seeds import START, RandomStateLike, streams
from roadict.two_stage import learn, starting_atoms
from roadict.updates.registry import UPDATES

Array = NDArray[np.floating]
RIDGE = 0.01
"""Default ridge of "simco"; the Gram matrix of unit atoms has ones on its diagonal."""


class AlternatingDictionaryLearning(Learner):
    """Two-stage dictionary learning: alternate sparse coding and dictionary updates.

    Any ``update`` can be combined with any ``coder``. These are the methods that ROAD is compared with.

    Parameters
    ----------
    n_components : int, default=None
        Number of atoms. None: twice the number of features.
    update : str, default="ksvd"
        "mod": all atoms by least squares (Engan, Aase, Husøy 1999). "ksvd": each atom with its codes by an SVD
        (Aharon, Elad, Bruckstein 2006); "approximate-ksvd": by one power step (Rubinstein, Zibulevsky, Elad 2008).
        "simco": all atoms by gradient steps on their spheres (Dai, Xu, Wang 2012). "blotless": blocks of atoms by
        total least squares (Yu, Dai, Cvetković, Zhu 2020). "sequential": each atom with its codes and an ℓ1 penalty
        (Seghouane, Hanif 2015); "consistent-sequential": with an adaptive penalty (Seghouane, Iqbal 2018).
    coder : str, default=None
        "omp", "lasso" or another algorithm of ``SparseCoder``. None: no coder for the sequential updates, which
        compute their own codes, and "omp" for the others.
    n_nonzero_coefs : int, default=None
        Nonzero codes per sample, for greedy coders. None: a tenth of the features, at least one.
    alpha : float, default=None
        For "lasso" and "sequential": weight of Σ|codes| relative to half the squared error. For "threshold" and
        "consistent-sequential": the threshold. None: 0.1 times the root-mean-square norm of the samples. For "half":
        its weight; None: the default of ``SparseCoder``.
    ridge : float, default=None
        For "simco": weight of the squared codes; 0 is primitive SimCO. None: 0.01.
    positive_code : bool, default=False
        Whether codes must not be negative, in the fit and in ``transform``; not with update="blotless", and only with
        the coders "omp", "lasso", "basis-pursuit" and "threshold". Atoms then retain their signs.
    positive_dict : bool, default=False
        Whether atoms must not be negative; not with update="simco" or "blotless".
    max_iter : int, default=100
        Maximum number of iterations, each a coding stage and an update. The last fifth refines the best dictionary so
        far. Before that a greedy coder may raise the error, which helps to escape poor local minima.
    tol : float, default=1e-4
        Bound on the relative changes of codes and atoms per iteration. 0: run all iterations.
    dict_init : array of shape (n_components, n_features), default=None
        Initial atoms. None: mutually dissimilar samples.
    callback : callable, default=None
        Called after every iteration with a read-only ``Snapshot`` of the run (iteration, objective, code_change,
        atom_change, error, seconds, dictionary, codes). Returning a true value, or
        ``snapshot.stop()``, ends the run.
    checkpoint : path or Checkpoint, default=None
        Folder in which the fit is saved every 60 seconds; the last two checkpoints are retained, also after the fit.
        Fitting the same data with the same parameters resumes from there, with the same result; without a seed, only
        a fit that was interrupted.
        ``roadict.Checkpoint`` has more options.
    verbose : int, default=0
        1: a progress line on standard error. 2: a line per iteration.
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
        Seed of the start. The same integer gives the same result for any n_jobs.
    n_jobs : int, default=None
        Threads of the coders. None: all cores.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Atoms of unit norm; the entry of largest magnitude of each is positive, unless positive_code.
    codes_ : array of shape (n_samples, n_components)
        Codes of the fit. ``transform`` codes anew and may differ.
    n_iter_ : int
    history_ : History
        Per-iteration objective, code_change and atom_change (relative changes), error, seconds; ``to_frame()`` and
        ``plot()``.
    stop_reason_ : {"converged", "max_iter", "callback", "non-finite", "interrupted"}
        "interrupted": saved by ``roadict learn`` at Ctrl-C.
    objective_ : float
        ``‖X - codes_ @ components_‖_F``. With coder="lasso" or "sequential": ``Σ|codes_|`` plus its square over
        ``2 alpha_``; with "consistent-sequential" a concave penalty replaces ``Σ|codes_|``.
    error_ : float
        Relative data error of ``codes_``.
    alpha_ : float or None
        Weight or threshold used; None if update and coder use none, or a different one for each sample.
    atom_usage_ : array of shape (n_components,)
        Fraction of the samples that use each atom. Unused atoms (0) have unit norm too.
    n_features_in_ : int

    Examples
    --------
    >>> from roadict import AlternatingDictionaryLearning
    >>> from roadict.metrics import dictionary_error
    >>> from roadict.synthetic import planted
    >>> truth = planted(400, 16, 20, sparsity=2, random_state=0)
    >>> model = AlternatingDictionaryLearning(20, update="ksvd", n_nonzero_coefs=2, tol=0, random_state=0)
    >>> dictionary_error(model.fit(truth.data).components_, truth.dictionary) < 0.05
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        update: str = "ksvd",
        coder: str | None = None,
        n_nonzero_coefs: int | None = None,
        alpha: float | None = None,
        ridge: float | None = None,
        positive_code: bool = False,
        positive_dict: bool = False,
        max_iter: int = 100,
        tol: float = 1e-4,
        dict_init: ArrayLike | None = None,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        verbose: int = 0,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.update = update
        self.coder = coder
        self.n_nonzero_coefs = n_nonzero_coefs
        self.alpha = alpha
        self.ridge = ridge
        self.positive_code = positive_code
        self.positive_dict = positive_dict
        self.max_iter = max_iter
        self.tol = tol
        self.dict_init = dict_init
        self.callback = callback
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Learn atoms and codes.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            One sample per row.
        y : ignored

        Returns
        -------
        self
        """
        return self._fit(X)

    def _fitting(self, X: ArrayLike, sample_weight: ArrayLike | None = None, *, watched: bool) -> Fitting[None]:
        if sample_weight is not None:
            raise ValueError("two-stage methods take no sample_weight; use ROAD, or repeat rows of X")
        self._check_parameters()
        data, _ = self._validate(X, reset=True)
        checks.data_range(float(np.abs(data).max()), data.dtype)
        checks.memory(self._n_atoms(data.shape[1]), data.shape, data.dtype)
        check_reachable(data, self)
        scaled, unit = of_order_one(data.astype(np.float64))
        alpha = auto_alpha(sample_norm(scaled, None)) if self.alpha is None else self.alpha / unit
        coder_alpha: float | None = alpha
        if self._fit_coder == "half":  # its weight has different units and its own default
            coder_alpha = None if self.alpha is None else self.alpha / unit**1.5
        problem = describe_parameters(self) | {"estimator": "AlternatingDictionaryLearning"}
        problem |= describe_start(self._given_atoms(scaled), None, SERIAL)
        with open_checkpoints(self.checkpoint, problem, data, None, SERIAL) as checkpoints:
            fit = yield from learn(
                scaled,
                self._start(scaled, shared_seed(self.random_state, checkpoints, SERIAL)),
                update=self.update,
                coder=self._fit_coder,
                n_nonzero_coefs=self.n_nonzero_coefs,
                alpha=alpha,
                coder_alpha=coder_alpha,
                ridge=RIDGE if self.ridge is None else self.ridge,
                rule=Rule(self.max_iter, self.tol),
                view=View(unit, watched=watched),
                n_jobs=self.n_jobs,
                positive_code=bool(self.positive_code),
                positive_dict=bool(self.positive_dict),
                checkpoints=checkpoints,
            )
        self._set_fit(fit, data.dtype)
        self._convert_outputs_like(X)
        per_sample = self._fit_coder == "half" and self.alpha is None
        self.alpha_ = float(alpha * unit) if self._uses("alpha") and not per_sample else None
        self._warn_unless_converged()

    def _transform_coding(self) -> Coding:
        return Coding(self.transform_coder, self.n_nonzero_coefs, self.alpha, self.alpha_)

    @property
    def transform_coder(self) -> str:
        """The coder of ``transform``."""
        return self._fit_coder or "lasso"

    @property
    def _fit_coder(self) -> str | None:
        """The coder of the fit; None: the update computes the codes."""
        if self.coder is None and UPDATES[self.update].penalty is None:
            return "omp"
        return self.coder if self.coder is None else ALIASES.get(self.coder, self.coder)

    def _uses(self, name: str) -> bool:
        coder = self._fit_coder
        return name in UPDATES[self.update].parameters or (coder is not None and name in CODER_PARAMETERS[coder])

    def _check_parameters(self) -> None:
        checks.one_of("update", self.update, UPDATES)
        if self.coder is not None:
            coder_named("coder", self.coder, "None")
        self._check_run()
        if self.n_nonzero_coefs is not None:
            checks.whole_number("n_nonzero_coefs", self.n_nonzero_coefs)
        if self.alpha is not None:
            checks.real_number("alpha", self.alpha)
        if self.ridge is not None:
            checks.real_number("ridge", self.ridge, zero=True)
        self._check_signs()
        for name in ("n_nonzero_coefs", "alpha", "ridge"):
            value = getattr(self, name)
            if value is not None and not self._uses(name):
                raise ValueError(
                    f'{name}={value!r} is not used by update="{self.update}" with coder={self._fit_coder!r}; '
                    "leave it out"
                )

    def _check_signs(self) -> None:
        for name in ("positive_code", "positive_dict"):
            checks.true_or_false(name, getattr(self, name))
            if getattr(self, name) and name not in UPDATES[self.update].constraints:
                able = " or ".join(f'"{update}"' for update, method in UPDATES.items() if name in method.constraints)
                raise ValueError(f'{name}=True is not possible with update="{self.update}"; use {able}')
        if self.positive_code and self._fit_coder is not None:
            reject_positive(self._fit_coder)

    def _given_atoms(self, data: Array) -> Array | None:
        if self.dict_init is None:
            return None
        shape = self._n_atoms(data.shape[1]), data.shape[1]
        atoms = checks.given_dictionary("dict_init", self.dict_init, shape, data.dtype)
        if self.positive_dict:
            checks.nonnegative("dict_init", atoms, "positive_dict=True")
        return atoms

    def _start(self, data: Array, seed: np.random.SeedSequence) -> Array:
        given = self._given_atoms(data)
        if given is not None:
            return unit_rows(given)[0]
        constraints = Constraints(bool(self.positive_code), bool(self.positive_dict))
        return starting_atoms(data, self._n_atoms(data.shape[1]), streams(seed, START, 1)[0], constraints)

    def _warn_unless_converged(self) -> None:
        message = None
        if self.stop_reason_ == "non-finite":
            message = (
                f'update="{self.update}" produced non-finite numbers in iteration {self.n_iter_} and returns its '
                "start; pass data of moderate range"
            )
        elif self.stop_reason_ == "max_iter" and self.tol > 0:
            codes, atoms = self.history_["code_change"][-1], self.history_["atom_change"][-1]
            message = (
                f'update="{self.update}" has not converged in max_iter={self.max_iter} iterations: relative '
                f"change of the codes {codes:.2e}, of the atoms {atoms:.2e} "
                f"(tol={self.tol:g}); pass a larger max_iter or tol, or tol=0 to run all iterations"
            )
        if message is not None:
            warn_user(message, ConvergenceWarning)
