"""What an experiment is: problems × methods × seeds, as plain data."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from roadict.experiments.methods import Method
from roadict.experiments.provenance import sources_digest

FIRST_SEED = 70_000
"""Settings were tuned on seeds from 90,000 on."""


@dataclass(frozen=True)
class PlantedProblem:
    """Samples of a hidden dictionary, as ``roadict.synthetic.planted`` draws them.

    Attributes
    ----------
    trace : bool
        Whether the error along the iterations is recorded as well.
    """

    n_features: int
    n_components: int
    n_samples: int
    sparsity: int | None = None
    probability: float | None = None
    snr_db: float | None = None
    trace: bool = False


@dataclass(frozen=True)
class PictureProblem:
    """A picture to enlarge.

    Attributes
    ----------
    picture : {"digit", "zebra"}
    approach : {"yang", "zeyde", "yang-literal", "zeyde-literal"}
    source : str
        Where the pictures come from.
    digest : str
        Digest of the pictures, so that other pictures give other rows.
    """

    picture: str
    scale: int
    approach: str
    n_components: int
    max_iter: int
    source: str = ""
    digest: str = ""


Problem = PlantedProblem | PictureProblem


@dataclass(frozen=True)
class Panel:
    """One plot, or one part of a table: a name, a title and its problems."""

    name: str
    title: str
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class Trial:
    """One method on one problem with one seed: a row holds its result."""

    experiment: str
    panel: str
    problem: Problem
    method: Method
    seed: int
    engine: str

    def settings(self) -> dict[str, Any]:
        """Everything that may change the result, as JSON values."""
        return asdict(self) | {"sources": sources_digest(self.method.learner)}

    def key(self) -> str:
        """Digest of all settings."""
        text = json.dumps(self.settings(), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper, or an experiment of our own.

    Attributes
    ----------
    name : str
        As on the command line.
    title, paper : str
        Its subject, and its number in the paper.
    claim : str
        The paper's claim, in a sentence.
    note : str
        Our settings, for readers.
    panels : tuple of Panel
    methods : tuple of Method
    pictures : str or None
        Which pictures it needs: "digit" or "zebra".
    of_paper : bool
        Whether claim and problems are the paper's; otherwise ours.
    n_trials : int
        Number of trials unless the user gives one.
    """

    name: str
    title: str
    paper: str
    claim: str
    note: str
    panels: tuple[Panel, ...]
    methods: tuple[Method, ...]
    pictures: str | None = None
    of_paper: bool = True
    n_trials: int = 3

    def trials(self, number: int, engine: str) -> Iterator[Trial]:
        """Yield the trials, seed by seed, so that an interrupted run has complete curves of fewer trials."""
        for index in range(number):
            for panel in self.panels:
                for problem in panel.problems:
                    for method in self.methods:
                        if method.fixed and index:
                            continue
                        # Only ROAD has engines: another engine must not repeat the rows of other methods.
                        used = engine if method.is_road else ""
                        yield Trial(self.name, panel.name, problem, method, FIRST_SEED + index, used)


def samples(
    grid: tuple[int, ...],
    n_features: int,
    n_components: int,
    *,
    sparsity: int | None = None,
    probability: float | None = None,
    snr_db: float | None = None,
) -> tuple[PlantedProblem, ...]:
    """Problems that differ only in their number of samples."""
    return tuple(
        PlantedProblem(n_features, n_components, n, sparsity=sparsity, probability=probability, snr_db=snr_db)
        for n in grid
    )
