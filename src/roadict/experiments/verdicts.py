"""Whether the paper's claims hold, computed from rows only."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from roadict.experiments.judge_ablation import judge_ablation
from roadict.experiments.judge_figures import judge_bernoulli, judge_noise_free, judge_noisy, judge_solvers
from roadict.experiments.judge_tables import judge_table
from roadict.experiments.judgement import Verdict
from roadict.experiments.registry import EXPERIMENTS
from roadict.experiments.rows import Row
from roadict.experiments.summary import of_experiment, planned_rows

JUDGES: dict[str, Callable[[list[Row]], list[Verdict]]] = {
    "solvers": judge_solvers,
    "noise-free": judge_noise_free,
    "noisy": judge_noisy,
    "bernoulli": judge_bernoulli,
    "digits": judge_table,
    "zebra": judge_table,
    "ablation": judge_ablation,
}


def verdicts(rows: Iterable[Row]) -> list[Verdict]:
    """Judge every claim that there are rows for.

    Parameters
    ----------
    rows : iterable of rows
        Of any experiments.

    Returns
    -------
    list of Verdict
    """
    rows = list(rows)
    found: list[Verdict] = []
    for name, judge in JUDGES.items():
        if own := of_experiment(rows, name):
            planned = planned_rows(own, EXPERIMENTS[name])
            found += [replace(verdict, rows=len(own), planned=planned) for verdict in judge(own)]
    return found
