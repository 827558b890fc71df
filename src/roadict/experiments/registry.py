"""The experiments by name."""

from roadict.experiments.ablation import ABLATION
from roadict.experiments.bernoulli import BERNOULLI
from roadict.experiments.digits import DIGITS
from roadict.experiments.noise_free import NOISE_FREE
from roadict.experiments.noisy import NOISY
from roadict.experiments.plan import Experiment
from roadict.experiments.solvers import SOLVERS
from roadict.experiments.zebra import ZEBRA

EXPERIMENTS = {
    experiment.name: experiment for experiment in (SOLVERS, NOISE_FREE, NOISY, BERNOULLI, DIGITS, ZEBRA, ABLATION)
}


def chosen(name: str) -> list[Experiment]:
    """Return the experiment of that name, or all of the paper.

    Examples
    --------
    >>> [experiment.paper for experiment in chosen("noisy")]
    ['Fig. 3']
    """
    if name == "all":
        return [experiment for experiment in EXPERIMENTS.values() if experiment.of_paper]
    if name not in EXPERIMENTS:
        raise ValueError(f"there is no experiment {name}; use {', '.join(EXPERIMENTS)} or all")
    return [EXPERIMENTS[name]]
