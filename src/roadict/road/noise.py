"""The noise level from the data: hide entries, and see at which error bound the others predict them best."""

from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadict.checkpoints.journal import FitJournal
from roadict.checkpoints.storage import Metadata
from roadict.extras import require
from roadict.ranks.collectives import counts, total
from roadict.ranks.comm import Comm
from roadict.road.descent import Descent
from roadict.road.hidden import SHARE, Curve, excess, hidden_curve, hidden_entries
from roadict.road.multistart import SEARCH_TOL, Settings, broadcast_atoms, open_engine
from roadict.road.plan import Plan, Request
from roadict.runs.driving import Fitting
from roadict.runs.history import COLUMNS, History
from roadict.runs.loop import Outcome, Rule, View, follow
from roadict.runs.signals import stop_requested
from roadict.seeds import NOISE_MASK, NOISE_START, streams

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Array = NDArray[np.floating]
Mask = NDArray[np.bool_] | None

ROUNDS = (2, 3)
"""Minimum and maximum number of runs with hidden entries: each at the error bound that the one before has found."""
MAX_ITER, MAX_STEPS, TOL = 600, 100, 1e-3
"""Maximum number of iterations of these runs and of their descents, and the tolerance of the latter."""
NOISY_BOUND = 0.15
"""Error bound of the first round where the data are surely noisy: from small ones real data seem almost exact."""
FIRST_BOUND = 0.01
"""Error bound of the first round: from larger ones exact data of few samples count as noisy, and 0 has no descent."""
SIGNED_BOUND, SIGNED_ROUNDS = 0.3, (5, 8)
"""The same with nonnegative codes or atoms: from below, atoms that fit the noise are never left. From 0.15 on, half of
the noise of 10 dB was found (400 samples, nonnegative atoms), and after three rounds from 0.4 three times that of 30
dB."""
POSITIVE_CODE_SHARE = 0.7
"""With nonnegative codes and atoms of any sign, share of the bound that predicts best which is taken: atoms are more
accurate (error 0.0096 at 1, 0.0059 at 0.75; 200 samples, 20 dB), and codes of such atoms hardly fit noise."""
STEADY = 1.1
"""Ratio of two successive bounds up to which there are no more rounds."""
EXACT = 0.006
"""Bound below which data count as exact: without noise, few samples give up to 0.004; noise of 40 dB gives 0.006."""
PREDICTED = 0.035
"""Hidden error, by atoms learned with nothing hidden from few samples, up to which data count as exact: at most 0.03
without noise, at least 0.038 with noise of 30 dB."""
MAX_EPSILON = 0.95
"""Largest bound chosen: at 1 there are no codes, and nothing is learned."""
MIN_FEATURES = 8
"""Minimum number of observed entries per sample, on average, of which one is hidden."""
FEW = 500
"""Number of samples, about, from which the noise is estimated after Ctrl-C."""
MIN_HIDDEN = 100
"""Minimum number of hidden entries."""
MIN_WEIGHT = 0.01
"""Smallest Lasso weight chosen, relative to the root-mean-square norm of the samples."""


@dataclass(frozen=True)
class EpsilonPath:
    """How well hidden entries are predicted along a path of error bounds, largest first, and the bound chosen.

    Attributes
    ----------
    epsilon : array of shape (n_points,)
        Relative data error over the entries that are not hidden.
    alpha : array of shape (n_points,)
        Lasso weight of the codes.
    hidden_error : array of shape (n_points,)
        Sum of the absolute errors of the predicted entries over that of the entries themselves.
    excess, standard_error : arrays of shape (n_points,)
        Difference to the smallest hidden error, paired by sample, and its standard error.
    nonzeros : array of shape (n_points,)
        Mean number of nonzero codes per sample.
    chosen : int
        Index of the largest bound whose excess is within one standard error; with nonnegative codes or atoms of the one
        that predicts best, or about 0.7 times that if only codes are nonnegative.
    exact : bool
        Whether the data count as exact: the largest bound within one standard error is so small that the fit uses 0.
    """

    epsilon: Array
    alpha: Array
    hidden_error: Array
    excess: Array
    standard_error: Array
    nonzeros: Array
    chosen: int
    exact: bool

    COLUMNS = ("epsilon", "alpha", "hidden_error", "excess", "standard_error", "nonzeros")

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas DataFrame with one row per point, and a column that marks the chosen one."""
        require("to_frame()", "pandas")
        import pandas as pd

        columns = {name: getattr(self, name) for name in self.COLUMNS}
        return pd.DataFrame(columns | {"chosen": np.arange(len(self.epsilon)) == self.chosen})

    def plot(self) -> "Figure":
        """Plot the hidden error and the nonzeros over ε, with the chosen bound; returns a matplotlib Figure."""
        from roadict.drawing.selection import epsilon_figure

        return epsilon_figure(self.epsilon, self.hidden_error, self.standard_error, self.nonzeros, self.chosen)

    def __repr__(self) -> str:
        verdict = "exact data" if self.exact else f"epsilon {self.epsilon[self.chosen]:.3g} chosen"
        return (
            f"EpsilonPath({len(self.epsilon)} points from {self.epsilon[0]:.3g} to {self.epsilon[-1]:.3g}, {verdict})"
        )

    def to_json(self) -> Metadata:
        """Return the path as JSON values."""
        columns: Metadata = {name: getattr(self, name).tolist() for name in self.COLUMNS}
        return columns | {"chosen": self.chosen, "exact": self.exact}

    @classmethod
    def from_json(cls, values: Metadata) -> "EpsilonPath":
        """Return the path of these JSON values."""
        columns: dict[str, Any] = {name: np.array(values[name], np.float64) for name in cls.COLUMNS}
        return cls(**columns, chosen=int(values["chosen"]), exact=bool(values["exact"]))


class Choice(NamedTuple):
    """How the noise level was chosen.

    Attributes
    ----------
    path : EpsilonPath or None
        None: there is no noise, or a callback ended the fit before it was looked for.
    hopeless : bool
        Whether the attempt at an exact fit was abandoned.
    atoms : array of shape (n_components, n_features), or None
        The best so far.
    stopped : Outcome or None
        Of the last run, if a callback or Ctrl-C asked it to stop.
    """

    path: EpsilonPath | None
    hopeless: bool = False
    atoms: Array | None = None
    stopped: Outcome | None = None


def can_hide(request: Request) -> bool:
    """Whether there are enough entries to hide, and more samples than atoms; zero samples do not count."""
    data, observed, comm = request.data, request.observed, request.comm
    nonzero = data.any(axis=1)
    n_samples = sum(counts(comm, int(nonzero.sum())))
    entries = n_samples * data.shape[1] if observed is None else total(comm, float(observed[nonzero].sum()))
    per_sample = entries / max(n_samples, 1)
    hidden = n_samples * max(1.0, SHARE * per_sample)
    return n_samples > request.n_components and per_sample >= MIN_FEATURES and hidden >= MIN_HIDDEN


def hidden_path(plan: Plan, atoms: Array, seed: np.random.SeedSequence, n_jobs: int | None) -> EpsilonPath:
    """See how well the atoms of a fit with error bound 0 predict hidden entries: up to ``PREDICTED``, data are exact.

    With few samples a fit to part of the entries can fail although the data are exact, so here the atoms have been
    learned from all. They have adapted to the noise, if there is any, and still predict worse than without.
    """
    data, comm, roots = plan.unweighted(plan.problem.data), plan.comm, plan.problem.roots
    weights = None if roots is None else roots[:, 0] ** 2
    data, weights = _enough(data, weights)
    hidden = hidden_entries(data, None, streams(seed, NOISE_MASK, 1)[0])
    positive = plan.problem.constraints.positive_code
    curve = hidden_curve(data, ~hidden, hidden, atoms, plan.norm / plan.unit, comm, n_jobs, weights, positive)
    return _path([curve], plan.unit, 0.0, comm, weights)


def choose_epsilon(
    request: Request,
    settings: Settings,
    seed: np.random.SeedSequence,
    journal: FitJournal,
    dictionary: Array | None = None,
    abandoned: Array | None = None,
    earlier: tuple[Array, Outcome] | None = None,
) -> Fitting[Choice]:
    """Find the error bound at which hidden entries are predicted best, from a small one (or the floor) on.

    Every round hides entries anew, learns from the others with the bound so far, and codes these along a path of Lasso
    weights. The codes of the largest bound whose excess over the best is within one standard error give the next bound.
    With nonnegative codes or atoms those that predict best do. Where that is cheap, or samples are scarce, atoms are
    searched before they descend. If the data are surely noisy,
    each round continues from the atoms of the one before, the first from ``abandoned``: they have seen entries that are
    hidden now, but end where the descent takes them. To tell whether data are exact, they must not have.
    The last two rounds decide together.

    Parameters
    ----------
    request : Request
    settings : Settings
    seed : SeedSequence
        Of the whole fit.
    journal : FitJournal
    dictionary : array of shape (n_components, n_features), or None
        Atoms given by the user to start from.
    abandoned : array like dictionary, or None
        Atoms of an attempt at an exact fit that was abandoned: then the data are surely noisy.
    earlier : atoms and Outcome, or None
        Of an attempt at an exact fit: the best so far until a round ends.
    """
    comm = request.comm
    constraints = request.parameters.constraints
    signed = constraints.signed
    least, most = SIGNED_ROUNDS if signed else ROUNDS
    masks, starts = (streams(seed, key, most) for key in (NOISE_MASK, NOISE_START))
    request = request.some(masks[0])
    data, observed, weights = request.data, request.observed, request.weights
    settings = replace(settings, max_iter=min(MAX_ITER, settings.max_iter), tol=max(TOL, settings.tol))
    request = request.changed(
        formulation="constrained",
        epsilon="auto",
        alpha=None,
        n_init=1,
        max_iter=settings.max_iter,
        n_search_samples=sum(counts(comm, len(data))),
    )
    curves: list[Curve] = []
    noisy = abandoned is not None
    known = abandoned if dictionary is None else dictionary
    floor = request.plan().bound or 0.0
    bound = max(floor, SIGNED_BOUND if signed else NOISY_BOUND if noisy else FIRST_BOUND)
    for index in range(most):
        hidden = hidden_entries(data, observed, masks[index])
        seen = ~hidden if observed is None else observed & ~hidden
        visible = replace(request, data=np.where(seen, data, 0), observed=seen)
        plan = visible.changed(epsilon=bound).plan()
        start = plan.start(starts[index], known)
        view = View(plan.unit, index + 1, most, settings.watched, "noise", plan.code_unit)
        searches = plan.scarce or (plan.search_is_cheap and (signed or not noisy))
        outcome, atoms = yield from learn_atoms(plan, start, settings, view, journal, searches)
        stopped = outcome if outcome.stop_reason == "callback" else None
        if stopped is not None:
            if earlier is not None and (searches or not noisy):
                atoms, stopped = earlier
            if curves:
                break
        earlier, known = (atoms, outcome), atoms if noisy else dictionary
        data, seen, hidden, weights = _enough(data, seen, hidden, weights)
        scaled = data / data.dtype.type(plan.unit)
        given = plan.norm / plan.unit, comm, settings.n_jobs, weights, constraints.positive_code
        curves.append(hidden_curve(scaled, seen, hidden, atoms, *given))
        path = _path(curves[-2:], plan.unit, floor, comm, weights, 1.0 if signed else None)
        before, bound = bound, chosen_bound(path, floor)
        steady = index + 1 >= least and 1 / STEADY < bound / before < STEADY
        if stopped is not None or path.exact or steady:
            break
    if constraints.positive_code and not constraints.positive_dict:
        path = _path(curves[-2:], plan.unit, floor, comm, weights, POSITIVE_CODE_SHARE)
    return Choice(path, atoms=atoms, stopped=stopped and replace(stopped, stop_reason="callback"))


def _enough(*arrays: Any) -> list[Any]:
    """Return all rows of arrays, or after Ctrl-C some: enough for a first estimate."""
    n_rows = len(arrays[0])
    rows = slice(None, None, max(1, n_rows // FEW) if stop_requested() else 1)
    return [None if each is None else each[rows] for each in arrays]


def chosen_bound(path: EpsilonPath, floor: float) -> float:
    """Return the error bound for the next fit: the chosen one, but at least the floor."""
    return max(min(float(path.epsilon[path.chosen]), MAX_EPSILON), floor)


def learn_atoms(
    plan: Plan, start: tuple[Array, Array], settings: Settings, view: View, journal: FitJournal, searches: bool
) -> Fitting[tuple[Outcome, Array]]:
    """Search once, or not, descend, and return the atoms.

    Nothing is saved: a fit that resumes repeats this.
    """
    saving, (atoms, codes) = journal.open_stage(), start
    history = History({name: [] for name in COLUMNS})
    if searches:
        annealing = plan.runs[0]
        with closing(open_engine(plan, start, annealing, settings)) as engine:
            rule = Rule(settings.max_iter, SEARCH_TOL, plan.bound, annealing)
            outcome = yield from follow(engine, rule, view, None, saving, plan.comm)
            if outcome.stop_reason == "non-finite":
                return outcome, atoms
            atoms, codes = broadcast_atoms(engine, plan.comm)
        if outcome.stop_reason == "callback":
            return outcome, atoms
        history = outcome.history
    run = Descent(plan, atoms, codes, settings.n_jobs)
    rule = Rule(len(history["objective"]) + MAX_STEPS, settings.tol, None)
    outcome = yield from follow(run, rule, view, history, saving, plan.comm)
    return outcome, run.dictionary().astype(atoms.dtype)


def _path(
    curves: list[Curve],
    unit: float,
    floor: float,
    comm: Comm,
    sample_weight: Array | None = None,
    share: float | None = None,
) -> EpsilonPath:
    """Join the curves, which have the same weights and samples, and choose.

    ``share``: take this share of the bound that predicts best, instead of the largest within one standard error.
    """
    length = min(len(curve.weights) for curve in curves)
    misses = np.sum([curve.misses[:length] for curve in curves], axis=0)
    scale = sum(curve.scale for curve in curves) or 1.0  # hidden entries may all be zero
    compared = excess(misses, comm, sample_weight)
    chosen = compared.first_within
    epsilon = np.mean([curve.errors[:length] for curve in curves], axis=0)
    nonzeros = np.mean([curve.nonzeros[:length] for curve in curves], axis=0)
    exact = floor == 0 and bool(epsilon[chosen] <= EXACT)
    if share is not None:
        chosen = int(np.argmin(np.abs(epsilon - share * epsilon[np.argmin(compared.sums)])))
    alpha = curves[-1].weights[:length] * unit
    sums, over, error = (column / scale for column in compared)
    return EpsilonPath(epsilon, alpha, sums, over, error, nonzeros, chosen, exact)
