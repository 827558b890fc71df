"""What a fit is expected to do, and so how much of the whole is done after an iteration.

How many rounds and starts a fit takes, when each converges, and how long its iterations take shows only as it runs. The
numbers here are typical ones, with which a fit begins. Times are measured, and descents that follow are expected to be
about as long as those before: those of planted data take five steps, those of photographs a hundred.
"""

import math
from collections.abc import Callable
from statistics import mean
from typing import TypeVar

from roadict.progress.forecast import Forecast, Run
from roadict.road.hidden import SHARE
from roadict.road.learning import LOOK_EVERY
from roadict.road.multistart import FINISH_LEVELS, MANY, SEARCH_TOL
from roadict.road.noise import MIN_FEATURES, MIN_HIDDEN, ROUNDS, SIGNED_ROUNDS
from roadict.road.passes import ROUND
from roadict.road.penalty import BEFORE_DESCENT, FINAL_RESIDUAL, SIGNED_BEFORE_DESCENT, Annealing, Schedule
from roadict.road.plan import REQUIRED_AGREEMENT, SCARCE, UNSEARCHED, Plan, Request
from roadict.road.stream import BATCH
from roadict.runs.driving import Event, Fitting, tapped
from roadict.runs.snapshot import Snapshot

Result = TypeVar("Result")

STEP_COST, CURVE_COST, POSITIVE_CURVE_COST = 50.0, 2000.0, 20_000.0
"""Costs, per sample and atom, of a step of a descent and of the prediction of hidden entries, where one feature in an
iteration of a search costs 1, until their times are known. By `benchmarks/progress.py` with 32 atoms of 16 and of 64
features."""
STEPS, STEPS_OF_ROUND, STEPS_OVER_ALL = 60, 50, 40
"""Steps of the first descent: of a start, in a round for the noise level, over all samples."""
MORE_STARTS = 1
"""Starts beyond those that must agree."""
PASSES = 3
"""Passes in mini-batches over more samples than memory holds."""
AFTER_ROUNDS, AFTER_STARTS = 1.5, 0.8
"""Steps of the descent of a start, relative to those of the rounds before; and of that over all samples, relative to
the shortest one of a start."""
MAYBE = 0.5
"""Chance of a round, and of a start, beyond those that there are at least."""
ITERATION, STEP, NOISE_STEP = "iteration", "step", "noise step"
"""Kinds of iterations of searches and descents: with the small error bounds of rounds, codes are denser."""
OVER_ALL, LAST_STEP, BATCHES = "over all", "last step", "mini-batches"


def with_shares(fitting: Fitting[Result], share: Callable[[Snapshot], float]) -> Fitting[Result]:
    """Pass the events of a fit on, and give every snapshot the share of the whole that is done."""

    def set_share(event: Event) -> None:
        if isinstance(event, Snapshot):
            event.share = share(event)

    return tapped(fitting, set_share)


class FitStages:
    """The runs of a fit: a trial for an exact fit, rounds for the noise level, starts, and runs over all samples.

    Parameters
    ----------
    request : Request
    plan : Plan
        That of the request.
    max_iter : int
    n_rows : int
        Samples that mini-batches pass over after the fit, because memory does not hold them; 0: none.
    """

    def __init__(self, request: Request, plan: Plan, max_iter: int, n_rows: int = 0) -> None:
        self._plan, self._max_iter = plan, max_iter
        self._n_features = request.data.shape[1]
        self._constraints = request.parameters.constraints
        self._n_searched = min(plan.n_samples, request.n_searched)
        self._scarce = self._n_searched < SCARCE * request.n_components
        self._seeks_noise = _seeks_noise(request, plan)
        self._tries = self._seeks_noise and plan.tries_exact_finish
        runs = self._before() | self._starts(request.parameters.n_init) | self._over_all(n_rows)
        self._forecast = Forecast(runs)
        self._run, self._first, self._last = "", 0, 0
        self._resumed = False
        """Whether the fit was resumed within the present run."""
        self._lengths: dict[str, list[int]] = {}

    def share(self, snapshot: Snapshot) -> float:
        """Return the share of the fit that is done after this iteration."""
        name, iteration = self._name(snapshot), snapshot.iteration
        if name != self._run or iteration <= self._last:
            self._learn_from_run()
            if self._tries and self._begins_again(name):
                name = self._expect_exact_fit(snapshot)
            self._add_unexpected(name, snapshot)
            self._resumed = self._resumed if self._run else iteration > 1
            self._run, self._first = name, iteration - 1
        self._last = iteration
        return self._forecast.step(name, iteration - self._first)

    def _begins_again(self, name: str) -> bool:
        """Whether a run is the present one or one before it, with which its trial has begun again."""
        names = list(self._forecast.runs)
        return self._run in names and name in names[: names.index(self._run) + 1]

    def _expect_exact_fit(self, snapshot: Snapshot) -> str:
        """Expect one more search, over all samples, after one with some of them that was exact; returns its name."""
        self._tries, tried = False, self._run
        cost, name = self._n_features * self._plan.n_samples, self._name(snapshot)
        runs = {tried: self._forecast.runs[tried], name: Run(ITERATION, cost, self._last - self._first)}
        self._forecast.runs = runs
        return name

    def _add_unexpected(self, name: str, snapshot: Snapshot) -> None:
        runs = self._forecast.runs
        if name in runs:
            return
        names = list(runs)
        place = names.index(self._run) + 1 if self._run in runs else 0
        new = self._descent(STEPS) if _descends(snapshot) else self._search()
        items = list(runs.items())
        self._forecast.runs = dict([*items[:place], (name, new), *items[place:]])

    def _learn_from_run(self) -> None:
        """Expect descents that follow to take about as many steps as those before, of which all were seen."""
        runs, resumed = self._forecast.runs, self._resumed
        self._resumed = False
        if resumed or self._run not in runs or runs[self._run].kind not in (STEP, NOISE_STEP):
            return
        lengths = self._lengths.setdefault(runs[self._run].kind, [])
        lengths.append(self._last - self._first)
        for name in list(runs)[list(runs).index(self._run) + 1 :]:
            kind = runs[name].kind
            if name == OVER_ALL and STEP in self._lengths:
                runs[name] = runs[name]._replace(iterations=AFTER_STARTS * min(self._lengths[STEP]))
            elif kind in self._lengths:
                runs[name] = runs[name]._replace(iterations=mean(self._lengths[kind]))
            elif kind == STEP:
                runs[name] = runs[name]._replace(iterations=AFTER_ROUNDS * mean(lengths))

    def _name(self, snapshot: Snapshot) -> str:
        kind = "descent" if _descends(snapshot) else "search"
        if snapshot.stage in (LAST_STEP, BATCHES):
            return snapshot.stage
        if snapshot.stage == "noise":
            self._tries = False
            return f"noise {kind} {snapshot.start}"
        if kind == "descent" and snapshot.n_starts == 1 and OVER_ALL in self._forecast.runs:
            return OVER_ALL
        return f"{'trial' if self._tries else kind} {snapshot.start}"

    def _before(self) -> dict[str, Run]:
        """A trial, several if samples are scarce, and rounds for the noise level."""
        if not self._seeks_noise:
            return {}
        runs = {}
        for index, annealing in enumerate(self._plan.runs[: len(self._plan.runs) // 2 if self._plan.scarce else 1]):
            if self._tries and annealing is not None:
                hopeless = annealing.hold + 3 * LOOK_EVERY
                long = settled_after(annealing, FINAL_RESIDUAL) if self._plan.scarce else hopeless
                runs[f"trial {index + 1}"] = self._iterations(long)
        signed = self._constraints.signed
        curve = POSITIVE_CURVE_COST if self._constraints.positive_code else CURVE_COST
        least = (SIGNED_ROUNDS if signed else ROUNDS)[0]
        for index in range(1, least + 2):
            chance = 1.0 if index <= least else MAYBE
            if self._scarce or signed or not self._tries:
                runs[f"noise search {index}"] = self._search()._replace(chance=chance)
            runs[f"noise descent {index}"] = self._descent(STEPS_OF_ROUND, NOISE_STEP)._replace(chance=chance)
            runs[f"noise curve {index}"] = Run("curve", curve * self._n_searched, 1, chance)
        return runs

    def _starts(self, n_init: int | None) -> dict[str, Run]:
        """As many starts as mostly agree."""
        plan, signed = self._plan, self._constraints.signed
        if not (plan.descends or self._seeks_noise):
            few = plan.runs[: plan.required_agreement]
            tol = FINISH_LEVELS[0] if plan.tries_exact_finish else FINAL_RESIDUAL
            lengths = [self._max_iter if run is None else settled_after(run, tol) for run in few]
            return {f"search {index}": self._iterations(length) for index, length in enumerate(lengths, start=1)}
        n_starts = n_init or (7 if self._scarce or signed else 4)
        n_expected = min(n_starts, REQUIRED_AGREEMENT + self._scarce + MORE_STARTS)
        n_unsearched = 0 if signed else min(UNSEARCHED - self._scarce, n_starts - 1)
        runs = {}
        for index in range(1, n_expected + 1):
            chance = 1.0 if index <= REQUIRED_AGREEMENT + self._scarce else MAYBE
            if index > n_unsearched:
                runs[f"search {index}"] = self._search()._replace(chance=chance)
            runs[f"descent {index}"] = self._descent(STEPS)._replace(chance=chance)
        return runs

    def _over_all(self, n_rows: int) -> dict[str, Run]:
        """Runs over samples that are not searched."""
        n_samples, runs = self._plan.n_samples, {}
        if (self._plan.descends or self._seeks_noise) and n_samples > self._n_searched:
            if n_samples >= MANY * self._n_searched:
                runs[BATCHES] = _passes(n_samples, 1)
            runs[OVER_ALL] = Run(STEP, STEP_COST * n_samples, STEPS_OVER_ALL)
        return runs | ({BATCHES: _passes(n_rows, PASSES)} if n_rows else {})

    def _search(self) -> Run:
        return self._iterations(settled_after(SIGNED_BEFORE_DESCENT if self._constraints.signed else BEFORE_DESCENT))

    def _iterations(self, number: float) -> Run:
        number = min(number, self._max_iter)
        return Run(ITERATION, self._n_features * self._n_searched, number)

    def _descent(self, steps: int, kind: str = STEP) -> Run:
        return Run(kind, STEP_COST * self._n_searched, steps)


def settled_after(schedule: Schedule | Annealing, tol: float = SEARCH_TOL) -> float:
    """Return the iteration at which the residual of a search is meant to reach a tolerance.

    Examples
    --------
    >>> round(settled_after(BEFORE_DESCENT)), settled_after(BEFORE_DESCENT, FINAL_RESIDUAL)
    (230, 500.0)
    """
    warmth = schedule.warmth
    return schedule.hold + schedule.fall * math.log(warmth / tol) / math.log(warmth / FINAL_RESIDUAL)


def _passes(n_samples: int, number: int) -> Run:
    return Run(BATCHES, STEP_COST * BATCH * ROUND, max(1.0, number * n_samples / (BATCH * ROUND)))


def _descends(snapshot: Snapshot) -> bool:
    return "stationarity" in snapshot.residuals


def enough_to_hide(n_samples: int, n_features: int, n_components: int) -> bool:
    """Whether the noise level can be found by hiding entries, if none are missing and no sample is zero.

    Examples
    --------
    >>> enough_to_hide(200, 16, 32), enough_to_hide(200, 4, 8), enough_to_hide(30, 16, 32)
    (True, False, False)
    """
    many = n_samples * max(1.0, SHARE * n_features) >= MIN_HIDDEN
    return n_features >= MIN_FEATURES and many and n_samples > n_components


def _seeks_noise(request: Request, plan: Plan) -> bool:
    """Whether entries are going to be hidden, as far as the shapes tell: without a sum over ranks."""
    shape = plan.n_samples, request.data.shape[1], request.n_components
    return request.parameters.noise_is_unknown and enough_to_hide(*shape)
