"""Values of rows by panel, method and number of samples."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from roadict.experiments.plan import Experiment
from roadict.experiments.registry import EXPERIMENTS
from roadict.experiments.rows import Row

Values = dict[str, dict[float, list[float]]]
"""Method, number of samples (or iterations), one value per trial."""
MAX_NAMED = 3
"""Methods with equally many trials that are named; more are called the others."""


def of_experiment(rows: Iterable[Row], name: str) -> list[Row]:
    """The rows of one experiment."""
    return [row for row in rows if row["settings"]["experiment"] == name]


def by_samples(rows: Iterable[Row], panel: str, measure: str = "error") -> Values:
    """Errors of a panel against the number of samples."""
    values: Values = defaultdict(lambda: defaultdict(list))
    for row in rows:
        settings = row["settings"]
        if settings["panel"] == panel:
            values[settings["method"]["name"]][settings["problem"]["n_samples"]].append(row["result"][measure])
    return {method: dict(sorted(points.items())) for method, points in values.items()}


def by_seed(rows: Iterable[Row], panel: str, measure: str = "error") -> dict[str, dict[float, dict[int, float]]]:
    """Values of a panel by method, number of samples (0 for pictures) and seed, so that trials can be paired."""
    values: dict[str, dict[float, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        settings = row["settings"]
        if settings["panel"] == panel:
            points = values[settings["method"]["name"]]
            points[settings["problem"].get("n_samples", 0)][settings["seed"]] = row["result"][measure]
    return {method: dict(points) for method, points in values.items()}


def panels_with_rows(rows: list[Row]) -> list[str]:
    """Panels that have rows, in the order of the figure; the rows are of one experiment."""
    present = {row["settings"]["panel"] for row in rows}
    return [panel.name for panel in EXPERIMENTS[rows[0]["settings"]["experiment"]].panels if panel.name in present]


def planned_rows(rows: Iterable[Row], experiment: Experiment) -> int:
    """Number of rows that a complete run of an experiment has.

    A row records the trials that its run was to make; ROAD and the others may have different numbers of them, and only
    one of the two may have been wanted at all. Of rows without that record the seeds are counted.
    """
    rows, planned = list(rows), 0
    for of_road in (True, False):
        methods = {method.name: method for method in experiment.methods if method.is_road == of_road}
        own = [row for row in rows if row["settings"]["method"]["name"] in methods]
        seeds = len({row["settings"]["seed"] for row in own})
        trials = max([row.get("trials", 0) for row in own], default=0)
        each = sum(1 if method.fixed else max(trials, seeds) for method in methods.values())
        planned += each * sum(len(panel.problems) for panel in experiment.panels) * bool(own)
    return planned


def not_run(rows: Iterable[Row], experiment: Experiment) -> tuple[str, list[str]]:
    """Which methods have no rows, because only ROAD or only the others were wanted.

    Returns
    -------
    group : str
        The value of ``--methods`` that runs them, or an empty text if both have rows.
    labels : list of str
        Their names.
    """
    found = {row["settings"]["method"]["name"] for row in rows}
    for group, of_road in (("road", True), ("others", False)):
        methods = [method for method in experiment.methods if method.is_road == of_road]
        if methods and not any(method.name in found for method in methods):
            return group, [method.label for method in methods]
    return "", []


def by_iteration(rows: Iterable[Row], panel: str) -> Values:
    """Errors of a panel along the iterations.

    A run that ended counts with its last error, so that every mean is over the same trials.
    """
    traces = defaultdict(list)
    for row in rows:
        if row["settings"]["panel"] == panel:
            traces[row["settings"]["method"]["name"]].append(row["result"]["trace"])
    values: Values = {}
    for method, found in traces.items():
        grid = sorted({iteration for trace in found for iteration, _ in trace})
        values[method] = {
            at: [next((error for i, error in reversed(trace) if i <= at), trace[0][1]) for trace in found]
            for at in grid
        }
    return values


def by_method(rows: Iterable[Row], panel: str) -> dict[str, list[float]]:
    """PSNR of a panel of a table."""
    values: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["settings"]["panel"] == panel:
            values[row["settings"]["method"]["name"]].append(row["result"]["psnr"])
    return dict(values)


def trial_counts(rows: Iterable[Row], method: str) -> tuple[int, int]:
    """Minimum and maximum number of trials of a method over its problems."""
    number = Counter(
        (row["settings"]["panel"], row["settings"]["problem"].get("n_samples"))
        for row in rows
        if row["settings"]["method"]["name"] == method
    )
    return min(number.values(), default=0), max(number.values(), default=0)


def describe_trials(rows: Iterable[Row], labels: dict[str, str]) -> str:
    """Describe how many trials the methods have, the most first.

    Parameters
    ----------
    rows : iterable of rows
        Of one experiment.
    labels : dict
        Labels of the methods to describe, by name.

    Returns
    -------
    str
        Such as "20 trials of every method" or "100 trials of ROAD; 20 of the others".
    """
    rows, groups = list(rows), defaultdict(list)
    for name, label in labels.items():
        if (number := trial_counts(rows, name))[1]:
            groups[number].append(label.replace(",", ""))
    if not groups:
        return "no trials"
    counts = [
        (f"{low}" if low == high else f"{low} to {high}", high, names)
        for (low, high), names in sorted(groups.items(), reverse=True)
    ]
    if len(counts) > 1 and len(counts[-1][2]) > MAX_NAMED:
        counts[-1] = (*counts[-1][:2], ["the others"])
    (first, most, names), *others = counts
    whose = "every method" if len(names) == len(labels) else ", ".join(names)
    head = f"{first} trial{'s' * (most != 1)} of {whose}"
    return "; ".join([head, *(f"{number} of {', '.join(names)}" for number, _, names in others)])
