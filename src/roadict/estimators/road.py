"""ROAD as a scikit-learn estimator."""

import math
import os
from collections.abc import Iterator
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from roadict import checks
from roadict.checkpoints.journal import FitJournal
from roadict.checkpoints.schedule import Checkpoint, fingerprint, open_checkpoints
from roadict.checks import warn_user
from roadict.coders.registry import coder_named, reject_positive
from roadict.engines.registry import ENGINES, engine_name
from roadict.estimators.advice import convergence_warning, dense_advice
from roadict.estimators.attributes import last_stationarity
from roadict.estimators.consistency import (
    MIN_SAMPLES,
    consistent_parameters,
    consistent_samples,
    consistent_start,
    shared_seed,
)
from roadict.estimators.known import check_known_atoms, check_reachable, check_width, known_atoms
from roadict.estimators.learner import Coding, Learner
from roadict.estimators.parts import take_part
from roadict.estimators.rows import all_codes, first_samples, large_rows
from roadict.estimators.streaming import Streaming, terms_of
from roadict.estimators.weights import add_left_out, used_samples
from roadict.formulation import Triple
from roadict.ranks.collectives import counts, largest, offset, on_all_ranks, total
from roadict.ranks.comm import Comm, current, local_threads
from roadict.road.expected import FitStages, with_shares
from roadict.road.large import learn_from_rows, scaled_up
from roadict.road.learning import Learned, learn_data, learn_no_more
from roadict.road.multistart import Settings
from roadict.road.number import Trial
from roadict.road.plan import DEFAULT_ITERATIONS, FORMULATIONS, Parameters, Plan, Request
from roadict.road.stream import Samples, Stream, continued
from roadict.runs.driving import Fitting
from roadict.runs.snapshot import Callback
from roadict.seeds import START, RandomStateLike, streams

if TYPE_CHECKING:
    from roadict.engines.gpu.batch import Pool

Array = NDArray[np.floating]


class ROAD(Learner):
    """Dictionary learning by rank-one atomic decomposition.

    Learns ``X ≈ codes @ components`` with few nonzero codes per sample. ADMM optimises atoms and codes jointly, as one
    rank-one matrix per atom: these matrices are column-sparse and sum to the data. No sparsity level has to be chosen.

    Parameters
    ----------
    n_components : int, default=None
        Number of atoms. None: twice the number of features.
    formulation : {"constrained", "lasso", "inexact"}, default="constrained"
        "constrained": minimise Σ|codes| subject to a bound on the data error (the paper's exact ADMM, eq.
        ROAD-formulation). "lasso": add the squared error to the objective (eq. ROAD-Lasso-formulation). "inexact": the
        paper's iADMM, the form of its convergence theorem (eq. ADMM-inexact-EasyForm).
    epsilon : float or "auto", default="auto"
        For "constrained": bound on ``‖X - codes @ components‖_F / ‖X‖_F`` over the observed entries; 0 is the
        noise-free form. "auto": the noise level, found by predicting hidden entries (``epsilon_path_``); 0 if the data
        count as exact. At least 1.1 times the smallest error that n_components atoms can reach, if that is not 0
        (estimated if entries are missing); exactly this if hiding entries is impossible, see Notes.
    alpha : float, default=None
        For "lasso": weight of Σ|codes| relative to half the squared error (the paper's 1/β). None: the weight at the
        noise level, found by predicting hidden entries (``epsilon_path_``), at least 0.01 times the root-mean-square
        norm of the samples; 0.1 times this norm if hiding entries is impossible, see Notes.
    beta : float or three floats, default=None
        For "inexact": ridge weights β1, β2, β3. None: the paper's 200, 300, 250, scaled to the data.
    positive_code, positive_dict : bool, default=False
        Whether codes, or entries of atoms, must not be negative; see Notes.
    fixed_atoms : array of shape (n_fixed, n_features), default=None
        Atoms that are known. They are normalised, count in n_components, and are the first of ``components_``; the
        others are learned beside them. They keep their direction and sign, and are never merged or replaced.
    rho : float, three floats or "auto", default="auto"
        Penalty parameter ρ of the ADMM; three values only for "inexact", each above its β. "auto": set from the scale
        of the data and n_components / n_features. Unless a start is given, the exact forms then anneal it: ρ is
        lowered until the run explores, and later raised until it converges.
    max_iter : int, default=None
        Maximum number of iterations per start, last step included, and of its descent (see Notes). None: 2,000, and
        10,000 for "inexact", as in the paper.
    tol : float, default=1e-4
        Bound on a tenth of the stationarity of a descent. Without a descent, bound on the relative primal and dual
        residuals (the paper's 1e-6, of squares, is 1e-3 here); the data error must also be within 10 tol of its bound.
        If the error bound is 0 and ρ is annealed, a run also converges when the exact finish succeeds (see ``exact_``).
        0: run all iterations of the search.
    n_init : int, default=None
        Maximum number of starts. Of the fits within the error bound, the one with the smallest objective is returned.
        The remaining starts are skipped once a fit is exact, or once enough fits agree in objective and atoms. None:
        see Notes.
    n_search_samples : int or "auto", default="auto"
        Number of samples, about, that starts and searches use if a descent over all follows (see Notes). "auto":
        between 10 and 25 per atom, fewer for large problems.
    store_codes : bool, default=False
        Whether a large fit, of more than 2²⁶ (67 million) codes, has ``codes_``, as a CSR array. Smaller ones have them
        anyway, as an array.
    dict_init : array of shape (n_components, n_features), default=None
        Initial atoms, of the first start if there are several. ``fixed_atoms`` take the places of the first.
    code_init : array of shape (n_samples, n_components), default=None
        Initial codes. If only one of dict_init and code_init is given, the other is computed.
    missing_values : None or np.nan, default=None
        np.nan: NaN marks an entry that was not observed. None: NaN is an error.
    engine : {"auto", "numba", "cuda", "reference"}, default="auto"
        "numba": compiled and multithreaded. "cuda": NVIDIA GPU (``pip install 'roadict[gpu]'``). "reference": the
        paper's equations, literally, for verification. "auto": "reference" if X has more than twice as many features
        as samples; else "cuda" if a GPU is available, n_samples × n_features × n_components is at least 5 million and
        n_features at most 1024; else "numba".
    transform_algorithm : {"lasso", "omp", "mp", "sp", "cosamp", "basis-pursuit", "half", "threshold"}, default="lasso"
        Coder of ``transform``; see ``SparseCoder``. "basis-pursuit" reproduces the samples exactly;
        "lasso_cd" and "lasso_lars" of scikit-learn mean "lasso".
    transform_alpha : float, default=None
        Weight of the sparsity term in ``transform``, for "lasso", "threshold" and "half". None: ``transform_alpha_``;
        for "half" the default of ``SparseCoder``.
    transform_n_nonzero_coefs : int, default=None
        Nonzero codes per sample, for "omp", "mp", "sp" and "cosamp" (None: a tenth of the observed features), and for
        "half" instead of a weight.
    callback : callable, default=None
        Called after every iteration with a read-only ``Snapshot`` of the run (iteration, objective, primal, dual,
        error, rho, seconds, start, dictionary, codes). Returning a true value, or
        ``snapshot.stop()``, ends the run.
    checkpoint : path or Checkpoint, default=None
        Folder in which the fit is saved every 60 seconds; the last two checkpoints are retained, also after the fit.
        Fitting the same data with the same parameters resumes from there, with the same result; without a seed, only
        a fit that was interrupted.
        ``roadict.Checkpoint`` has more options. What precedes the passes of a large fit, or the descent over all
        samples, is repeated.
    verbose : int, default=0
        1: a progress line on standard error. 2: a line per iteration.
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
        Seed of the starts and of the hidden entries. The same integer gives the same result for any n_jobs.
    n_jobs : int, default=None
        Threads of the compiled engine. None: all cores, divided among the ranks of a machine.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Atoms of unit norm; the entry of largest magnitude of each is positive, except with ``positive_code`` and in
        ``fixed_atoms``.
    codes_ : array or CSR array of shape (n_samples, n_components), or None
        Codes of the fit: the minimal ones for its atoms and bound, or for its weight ("lasso"); for "inexact" those of
        the run, refitted on their support. ``transform`` codes anew and may differ. In a process group: those of this
        rank's samples. None: a large fit without ``store_codes``, or a stream (``partial_fit``).
    n_iter_ : int
        Iterations of the returned fit.
    history_ : History
        Per-iteration objective, primal, dual, error, rho (the first of three), seconds; ``to_frame()`` and ``plot()``.
        The descent continues the columns of the search and adds stationarity; what a stage lacks is NaN.
        With error bound 0 and annealed ρ, the search runs on samples scaled to equal norm, and objective and error
        refer to these; the last step, if it gave the fit, follows in the same columns, in the units of X.
    stop_reason_ : {"converged", "max_iter", "callback", "non-finite", "interrupted"}
        "interrupted": saved by ``roadict learn`` at Ctrl-C.
    stationarity_ : float or None
        Distance of the atoms from the best ones for the same codes, each with the others held fixed: the root mean
        square over the atoms, weighted by the squares of their codes. 0 at a stationary point. None: no descent, or one
        in mini-batches.
    exact_ : bool
        Whether the exact finish produced the fit: nearly every sample is a combination of few atoms, up to rounding.
        ``history_`` then ends with the iteration before it, and ``history_.finished`` holds the values of the fit.
        Data may count as exact (``epsilon_`` 0) without it.
    n_starts_ : int
        Number of starts that were run. If the data turned out to be noisy, those that sought an exact fit do not count.
    n_starts_agreed_ : int
        Number of these that found the returned atoms, the returned fit included.
    objective_ : float
        ``Σ|codes_|``; for "lasso" plus the squared error over 2 alpha. Here and below, sums and means over samples are
        weighted by ``sample_weight``; those of a large fit are estimated, from a held-out batch or a pass.
    error_ : float
        Relative data error of ``codes_`` over the observed entries.
    rho_ : float or three floats
        Penalty used; its last value if it was annealed.
    epsilon_ : float or None
        Bound used on the relative error ("constrained"): given, or the noise level found.
    epsilon_path_ : EpsilonPath or None
        How the noise level was chosen: hidden error, its standard error and nonzeros over epsilon and alpha;
        ``to_frame()`` and ``plot()``. None: it was given, the exact finish made it superfluous, a callback ended the
        fit before, or hiding entries was impossible.
    atom_usage_ : array of shape (n_components,)
        Fraction of the samples that use each atom. Unused atoms (0) have unit norm too.
    transform_alpha_ : float
        Default weight of ``transform``: that of the fit for formulation="lasso", else max(0.01, ε/√s) times the
        root-mean-square norm of the samples, with s the mean number of nonzeros per sample in ``codes_``.
    n_features_in_ : int

    Notes
    -----
    Samples are rows: transpose the paper's Y. The method is that of C. Cheng and W. Dai, "Dictionary Learning Using
    Rank-One Atomic Decomposition (ROAD)".

    ``n_init=None`` is one start, unless rho="auto", formulation is "constrained" or "lasso", no start is given, and
    for an error bound of 0 also 1 ≤ n_components / n_features ≤ 3. Then the number of starts is:

    =======================================  ======================  =========================
    .                                        ≥ 6 samples per atom    < 6 samples per atom
    =======================================  ======================  =========================
    error bound 0, no missing entries        4                       7
    error bound 0, missing entries           3                       6
    otherwise                                4                       7
    agreeing fits that skip the rest         2                       3
    =======================================  ======================  =========================

    With an error bound above 0 or the Lasso form, every start ends with a descent: Lasso codes and atoms are improved
    in turn until the objective is stationary, so the search before it ends at residuals of 0.01. The first two starts
    (one, below 6 samples per atom) descend without a search. Fits of the same objective, to 0.5 %, also agree if fewer
    than 75 % of their atoms do (90 % where searches take long). If there are more than ``n_search_samples`` samples,
    starts use so many, chosen by their content; the best one then descends over all, after a pass over these in
    mini-batches if they are four times as many. In Lasso fits of fewer samples whose first starts agree in the
    objective but not in the atoms, descents over all take its place: from a start, and from the best atoms so far with
    noise added, three times; the last one ends at a stationarity of 3 tol.

    A fit of more than 2²⁶ codes (n_samples × n_components) does not hold them in memory. It learns from four times
    ``n_search_samples`` samples, and passes over all in mini-batches of 2,048, in random order, until the objective of
    a held-out batch of 2,048 changes by less than 10 tol in a pass. Data that count as exact need no pass. X may be a
    memory map, which is read in pieces, from its file. With missing entries, statistics are formed from samples
    completed by their representation, which takes one more product per mini-batch and more passes to settle.

    If the noise is unknown (epsilon="auto", or alpha=None for "lasso"), other runs come first. Where error bound 0,
    annealing and data without missing entries permit it, the first start above (all of them, below 6 samples per atom)
    seeks an exact fit; it is abandoned once its codes become denser. Unless it succeeds, up to three runs of at most
    600 iterations, and 100 of a descent, learn with 6 % of the entries hidden, from 10 to 25 samples per atom (large
    problems: descents alone). The noise level is the largest error whose excess in predicting hidden entries, compared
    with the best and paired by sample, is within one standard error. Levels up to 0.006 count as exact data. Hiding
    entries is impossible if samples have fewer than 8 observed entries on average, if there are fewer than 100 entries
    to hide or no more samples than atoms; it is omitted for a numeric ``rho`` with one start.

    With error bound 0, annealing and no missing entries, the search runs on samples scaled to equal norm. Unless the
    fit is exact, a last step of constant ρ then continues on the samples as they are.

    With ``positive_code`` or ``positive_dict`` the rank-one step of the ADMM is approximate: the nearest matrix v uᵀ
    with nonnegative v, u or both has no closed form, and every iteration takes a power step towards it from the last
    atom (ten if only atoms are nonnegative). If codes and atoms are both nonnegative, negative data cannot be reached.

    A numeric ``rho`` with ``n_init`` None or 1 runs the plain iteration of the paper, without annealing, exact finish,
    restarts or a search for the noise level; only ``codes_`` are made minimal. From the same ``dict_init`` and
    ``code_init`` it gives, with ``sample_weight``, the fit to X with every sample so many times. With defaults the
    recovery is alike, but not the run: starts are drawn from rows. ``fit_transform(X)`` equals
    ``fit(X).transform(X)``, not ``codes_``. float32 stays float32, integers become float64.

    In an initialised torch.distributed process group, ``fit`` is one fit on all ranks: each passes its own samples
    (possibly none), and all get the same atoms. Within ``roadict.ranks.alone()`` it is a fit of this process.

    Examples
    --------
    >>> from roadict import ROAD
    >>> from roadict.metrics import dictionary_error
    >>> from roadict.synthetic import planted
    >>> truth = planted(400, 16, 32, sparsity=3, random_state=0)
    >>> model = ROAD(n_components=32, random_state=0).fit(truth.data)
    >>> model.stop_reason_, dictionary_error(model.components_, truth.dictionary) < 1e-3
    ('converged', True)
    """

    _descends = True
    """Whether searches are followed by descents, where these apply."""
    _finishes = True
    """Whether they try the exact finish, where it applies."""
    _kept: Trial | None = None
    """Set by ``ROADCV`` where Ctrl-C has ended its choice: what is left is to code the samples."""

    def __init__(
        self,
        n_components: int | None = None,
        *,
        formulation: str = "constrained",
        epsilon: float | str = "auto",
        alpha: float | None = None,
        beta: float | Triple | None = None,
        positive_code: bool = False,
        positive_dict: bool = False,
        fixed_atoms: ArrayLike | None = None,
        rho: float | Triple | str = "auto",
        max_iter: int | None = None,
        tol: float = 1e-4,
        n_init: int | None = None,
        n_search_samples: int | str = "auto",
        store_codes: bool = False,
        dict_init: ArrayLike | None = None,
        code_init: ArrayLike | None = None,
        missing_values: float | None = None,
        engine: str = "auto",
        transform_algorithm: str = "lasso",
        transform_alpha: float | None = None,
        transform_n_nonzero_coefs: int | None = None,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        verbose: int = 0,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.formulation = formulation
        self.epsilon = epsilon
        self.alpha = alpha
        self.beta = beta
        self.positive_code = positive_code
        self.positive_dict = positive_dict
        self.fixed_atoms = fixed_atoms
        self.rho = rho
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.n_search_samples = n_search_samples
        self.store_codes = store_codes
        self.dict_init = dict_init
        self.code_init = code_init
        self.missing_values = missing_values
        self.engine = engine
        self.transform_algorithm = transform_algorithm
        self.transform_alpha = transform_alpha
        self.transform_n_nonzero_coefs = transform_n_nonzero_coefs
        self.callback = callback
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn atoms and codes.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            One sample per row. In a process group: this rank's samples, possibly none. If X is a torch tensor, atoms
            and codes are tensors on its device.
        y : ignored
        sample_weight : float or array of shape (n_samples,), default=None
            Weights of the samples, at least 0: how often each counts in the objective, the error bound and the
            rank-one step. Samples of weight 0 are left out, and coded afterwards with the bound or weight of the fit,
            so that ``codes_`` has a row for each. None: all 1. In a process group: those of this rank's samples.

        Returns
        -------
        self
        """
        return self._fit(X, sample_weight)

    def _comm(self) -> Comm:
        return current()

    def _fitting(
        self,
        X: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        watched: bool,
        pool: "Pool | None" = None,
        executor: Executor | None = None,
    ) -> Fitting[None]:
        """Fit step by step; ``pool`` and ``executor`` are shared with other fits."""
        comm = self._comm()
        on_all_ranks(comm, self._check_parameters)
        problem = consistent_parameters(self, comm)
        large = large_rows(self, X, sample_weight, self._parameters(), comm)
        if large is None:
            given = self._validate_on_ranks(X, sample_weight, comm)
        else:
            given = first_samples(large, self._n_atoms(large.shape[1]), self._parameters(), comm)
        data, observed, weights, rows = used_samples(*given, comm)
        n_components = self._n_atoms(data.shape[1])
        on_all_ranks(comm, lambda: checks.memory(n_components, data.shape, data.dtype))
        parameters = self._parameters()
        check_width(parameters, data.shape[1], n_components)
        check_reachable(data, parameters, comm, weights)
        request = Request(data, observed, n_components, parameters, comm, weights)
        plan = request.plan()
        if plan.warning is not None and comm.rank == 0:
            warn_user(plan.warning)
        dictionary, codes = on_all_ranks(comm, lambda: self._given_start(plan, n_components, rows))
        engine = engine_name(self.engine, plan.n_samples, data.shape[1], n_components)
        problem |= {"estimator": "ROAD", "n_components": n_components, "engine": engine}
        problem |= consistent_start(dictionary, codes, engine, self.checkpoint is not None, comm)
        counted = weights if large is None else large.weights
        problem["sample_weight"] = None if counted is None else fingerprint(counted[:, None], comm)
        threads = local_threads(self.n_jobs, comm)
        settings = Settings(engine, self._n_iterations, self.tol, threads, watched, pool, executor)
        saved: tuple[Any, Any] = (data, observed) if large is None else (large, None)
        stream = None
        with open_checkpoints(self.checkpoint, problem, *saved, comm) as checkpoints:
            seed = shared_seed(self.random_state, checkpoints, comm)
            starts = partial(self._starts, dictionary=dictionary, codes=codes, seed=seed)
            journal = FitJournal(checkpoints)
            own = journal if large is None else journal.aside()
            if (kept := self._kept) is None:
                stages = FitStages(request, plan, self._n_iterations, 0 if large is None else len(large))
                fitting = learn_data(request, plan, starts, settings, seed, own, dictionary)
                learned = yield from with_shares(fitting, stages.share)
            else:
                learned = learn_no_more(request, plan, kept.atoms, kept.epsilon, kept.alpha, settings)
            if learned.plan.descends and learned.fit.outcome.stop_reason != "non-finite":
                stream = continued(learned.fit, learned.plan, (data, observed, weights))
            if large is not None and stream is not None and learned.fit.outcome.stop_reason != "callback":
                passes = learn_from_rows(large, learned.fit, learned.plan, stream, settings, seed, journal)
                fit, stream = yield from with_shares(passes, stages.share)
                learned = learned._replace(fit=fit)
            elif large is not None:
                used = total(comm, float(len(data) if weights is None else weights.sum()))
                learned = learned._replace(fit=scaled_up(learned.fit, total(comm, large.weight) / used))
        self._set_attributes(learned, weights)
        self._set_stream(stream, learned.plan, sum(counts(comm, len(data) if large is None else len(large))))
        if large is not None:
            weight = None if stream is None else stream.weight * learned.plan.unit
            code = partial(all_codes, large, self.components_, weight, self.positive_code, threads)
            self.codes_ = on_all_ranks(comm, code) if self.store_codes else None
        elif rows is not None:
            atoms, alpha = self.components_, self.transform_alpha_
            self.codes_ = add_left_out(self.codes_, rows, *given[:2], learned.plan, atoms, alpha, settings)
        self._convert_outputs_like(X)
        message = convergence_warning(self)
        if message is not None and comm.rank == 0:
            warn_user(message, ConvergenceWarning)

    def _set_stream(self, stream: Stream | None, plan: Plan, n_samples: int) -> None:
        """Set what ``partial_fit`` continues from; warn if most of the samples were not used."""
        exact = self.exact_ or (self.epsilon_path_ is not None and self.epsilon_path_.exact)
        if plan.n_samples < n_samples and stream is None and not exact and plan.comm.rank == 0:
            warn_user(
                f"an error bound of 0 has no descent, so that the fit of {n_samples:,} samples learned from "
                f'{plan.n_samples:,} only; pass epsilon="auto" or a number above 0'
            )
        dtype, terms = plan.problem.data.dtype, terms_of(self)
        self._stream_ = Streaming(dtype, n_samples, stream, plan.unit, (), n_samples, exact, terms)

    def partial_fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one more part of a stream; ``transform`` works from the first part on.

        The first parts are collected and fitted like ``fit`` does, again whenever their number has doubled, until
        there are as many samples as a search uses. From then on every part is taken in mini-batches of 2,048 samples,
        with the error bound or Lasso weight found by then: it is coded, and the atoms are improved to fit the
        statistics of all codes so far, in which former ones fade. Up to 16 times as many samples as a search uses are
        held, and saved with the model; a descent over all of them follows whenever they have doubled. Atoms of exact
        data stay. With an error bound of 0 for data that are not exact there is no descent: all parts are collected,
        and fitted again whenever their number has doubled. After ``fit``, the stream continues from there, if that had
        a descent or was exact.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            All parts have the same number of features and the same dtype. In a process group: this rank's samples.
        y : ignored
        sample_weight : float or array of shape (n_samples,), default=None
            As for ``fit``.

        Returns
        -------
        self
            Its ``codes_`` is None, and ``objective_``, ``error_`` and ``atom_usage_`` are those of this part in the
            atoms before it, once parts are taken in mini-batches; ``history_``, ``n_iter_`` and ``stop_reason_`` those
            of the last fit or descent. If a part is not accepted, the model is unchanged.
        """
        with self._unchanged_unless_finished():
            take_part(self, X, sample_weight)
        return self

    @property
    def _n_iterations(self) -> int:
        return DEFAULT_ITERATIONS[self.formulation] if self.max_iter is None else self.max_iter

    def _parameters(self) -> Parameters:
        return Parameters(
            formulation=self.formulation,
            epsilon=self.epsilon,
            alpha=self.alpha,
            beta=self.beta,
            rho=self.rho,
            n_init=self.n_init,
            max_iter=self._n_iterations,
            n_search_samples=self.n_search_samples,
            positive_code=bool(self.positive_code),
            positive_dict=bool(self.positive_dict),
            fixed_atoms=known_atoms(self.fixed_atoms),
            anneal=self.dict_init is None and self.code_init is None,
            descend=self._descends,
            finish=self._finishes,
        )

    def _transform_coding(self) -> Coding:
        return Coding(
            self.transform_algorithm, self.transform_n_nonzero_coefs, self.transform_alpha, self.transform_alpha_
        )

    def _check_parameters(self) -> None:
        checks.one_of("formulation", self.formulation, FORMULATIONS)
        checks.one_of("engine", self.engine, ENGINES)
        coder = coder_named("transform_algorithm", self.transform_algorithm)
        self._check_run()
        for name, most in (("n_init", checks.MAX_STARTS), ("transform_n_nonzero_coefs", None)):
            if getattr(self, name) is not None:
                checks.whole_number(name, getattr(self, name), largest=most)
        if isinstance(self.n_search_samples, str):
            checks.one_of("n_search_samples", self.n_search_samples, ("auto",), "a whole number")
        else:
            checks.whole_number("n_search_samples", self.n_search_samples, (self.n_components or 0) + 1)
        for name in ("store_codes", "positive_code", "positive_dict"):
            checks.true_or_false(name, getattr(self, name))
        if self.positive_code:
            reject_positive(coder)
        check_known_atoms(self.fixed_atoms, self.positive_dict)
        if self.transform_alpha is not None:
            checks.real_number("transform_alpha", self.transform_alpha, zero=True)
        for name, form in (("epsilon", "constrained"), ("alpha", "lasso"), ("beta", "inexact")):
            value = getattr(self, name)
            given = value is not None and not (isinstance(value, str) and value == "auto")
            if given and self.formulation != form:
                raise ValueError(
                    f'{name}={value!r} belongs to formulation="{form}", not "{self.formulation}"; leave it out'
                )

    def _validate_on_ranks(
        self, X: ArrayLike, sample_weight: ArrayLike | None, comm: Comm, before: Streaming | None = None
    ) -> Samples:
        """Validate on every rank; an error on one rank is raised on all. Rows are numbered over all ranks.

        ``before``: the stream that X is a part of.
        """
        shape = getattr(X, "shape", ())
        first_row = offset(comm, shape[0] if shape else 0)
        min_samples = 0 if comm.size > 1 else 1 if before is not None else None

        def act() -> Samples:
            data, observed = self._validate(X, reset=before is None, min_samples=min_samples, first_row=first_row)
            if before is not None:
                before.check(data.dtype)
            return data, observed, checks.sample_weights(sample_weight, len(data), data.dtype, first_row)

        data, observed, weights = on_all_ranks(comm, act)
        data, observed = consistent_samples(data, observed, comm, MIN_SAMPLES if before is None else 1)
        if observed is not None and before is None:
            n_observed = comm.sum(observed.sum(axis=0, dtype=np.int64))
            if comm.rank == 0:
                checks.warn_of_unobserved(n_observed)
        return data, observed, weights

    def _given_start(
        self, plan: Plan, n_components: int, rows: NDArray[np.bool_] | None
    ) -> tuple[Array | None, Array | None]:
        """Return dict_init and code_init, checked and in the engine's units; ``rows``: the samples that are used."""
        data = plan.problem.data
        dictionary = codes = None
        if self.dict_init is not None:
            shape = (n_components, data.shape[1])
            dictionary = checks.given_dictionary("dict_init", self.dict_init, shape, data.dtype)
            if self.positive_dict:
                checks.nonnegative("dict_init", dictionary, "positive_dict=True")
        if self.code_init is not None:
            shape = (len(data) if rows is None else len(rows), n_components)
            codes = checks.given_array("code_init", self.code_init, shape, data.dtype)
            if self.positive_code:
                checks.nonnegative("code_init", codes, "positive_code=True")
            codes = (codes if rows is None else codes[rows]) / data.dtype.type(plan.unit)
            checks.code_range(codes)
            codes = plan.weighted(codes)
        return dictionary, codes

    def _starts(
        self, plan: Plan, dictionary: Array | None, codes: Array | None, seed: np.random.SeedSequence
    ) -> Iterator[tuple[Array, Array]]:
        """Draw the starts one by one; the first uses dict_init and code_init."""
        if codes is not None and largest(plan.comm, codes) == 0:
            raise ValueError("code_init is all zero, from which no run can start; leave it out")
        first, *others = streams(seed, START, len(plan.runs))
        yield plan.start(first, dictionary, codes)
        for rng in others:
            yield plan.start(rng)

    def _set_attributes(self, learned: Learned, weights: Array | None) -> None:
        fit, plan, self.epsilon_path_ = learned
        self._set_fit(fit, plan.problem.data.dtype, plan.comm, weights)
        self.exact_, self.n_starts_, self.n_starts_agreed_ = fit.exact, fit.n_starts, fit.n_agreed
        rhos = tuple(rho / plan.unit for rho in plan.problem.rhos)
        rho = self.history_["rho"]
        self.rho_ = float([rhos[0], *rho[np.isfinite(rho)]][-1]) if len(set(rhos)) == 1 else rhos
        self.stationarity_ = last_stationarity(self.history_)
        self.epsilon_ = plan.bound
        per_sample = max(1.0, float(self.atom_usage_.sum()))
        coarse = max(0.01, (plan.bound or 0.0) / math.sqrt(per_sample)) * plan.norm
        self.transform_alpha_ = plan.alpha * plan.unit if self.formulation == "lasso" else coarse

    @property
    def dense_advice(self) -> str:
        """What to do about codes with nearly as many nonzeros per sample as the data have dimensions; "" if sparse."""
        return dense_advice(self)
