"""Jobs of several stages: how much of the whole is done."""

from collections.abc import Callable, Mapping

Progress = Callable[[int, int, str], None]
"""Called by long tasks with steps done, steps in total, and a text: the stage, two spaces, details."""
STEPS, FINE_STEPS = 1000, 100_000
"""Steps in total of jobs that consist of stages; of those whose pace is measured within seconds."""
LIKELY = 0.9
"""Share of a stage that is done when it has taken as long as expected: it may take longer."""


class Stages:
    """The stages of a job in their order, with their expected costs.

    The share of the whole that is done never falls. A stage that begins completes those before it, whether they ended
    early or did not take place.

    Parameters
    ----------
    costs : mapping of str to float
        Expected costs of the stages by name, in any unit.

    Examples
    --------
    >>> job = Stages({"learning": 1, "coding": 3})
    >>> job.share("learning", 0.5), job.share("coding", 0.0), job.share("coding", 1.0)
    (0.125, 0.25, 1.0)
    """

    def __init__(self, costs: Mapping[str, float]) -> None:
        self._costs = dict(costs)
        self._at: str | None = None
        self._share = 0.0

    @property
    def begun(self) -> bool:
        """Whether any stage has reported."""
        return self._at is not None

    @property
    def cost(self) -> float:
        """Expected cost of all stages."""
        return sum(self._costs.values())

    def share(self, stage: str, part: float) -> float:
        """Return the share of the job that is done after this part, 0 to 1, of a stage."""
        names = list(self._costs)
        before = sum(self._costs[name] for name in names[: names.index(stage)])
        self._at = stage
        done = (before + part * self._costs[stage]) / (self.cost or 1.0)
        self._share = max(self._share, min(1.0, done))
        return self._share

    def part(self, stage: str, report: Progress) -> Progress:
        """Return a callback for the steps of a stage, which reports the steps of the whole job, out of ``STEPS``."""

        def advance(done: int, total: int, text: str) -> None:
            report(round(STEPS * self.share(stage, done / total if total else 0.0)), STEPS, text)

        return advance


class ResumedShare:
    """Share that is done of a job that may have been resumed: it begins where the job stood, and ends at 1.

    A resumed job only knows what it expects from there on, and may report less, or 0.

    Attributes
    ----------
    done : float
        Share at which it stood; then, share that is done.

    Examples
    --------
    >>> job = ResumedShare(0.6)
    >>> [round(job.follow(share), 3) for share in (0.2, 0.6, 1.0)]
    [0.6, 0.8, 1.0]
    """

    def __init__(self, done: float = 0.0) -> None:
        self.done = done
        self._first: tuple[float, float] | None = None

    def follow(self, share: float) -> float:
        """Return the share that is done where the job itself reports this one."""
        if self._first is None:
            self._first = share, max(share, self.done)
        first, stood = self._first
        left = (1 - share) / (1 - first) if first < 1 else 0.0
        self.done = max(self.done, 1 - (1 - stood) * left)
        return self.done


def likely_part(done: float, expected: float) -> float:
    """Return the part of a stage that is done after so many steps, of which this number is expected; always below 1.

    Examples
    --------
    >>> [round(likely_part(done, 100), 3) for done in (0, 50, 100, 200, 1000)]
    [0.0, 0.45, 0.9, 0.95, 0.99]
    """
    ratio = done / max(expected, 1.0)
    return LIKELY * ratio if ratio <= 1 else 1 - (1 - LIKELY) / ratio
