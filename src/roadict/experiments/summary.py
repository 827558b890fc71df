"""Values of rows by panel, method and number of samples."""

from collections import Counter, defaultdict
from collections.abc import Iterable

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


def by_method(rows: Iterable[Row], panel: str, measure: str = "psnr") -> dict[str, list[float]]:
    """Values of a panel of a table."""
    values: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["settings"]["panel"] == panel:
            values[row["settings"]["method"]["name"]].append(row["result"][measure])
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
    head = f"{first} trial{'s' * (most != 1)} of {', '.join(names) if others else 'every method'}"
    return "; ".join([head, *(f"{number} of {', '.join(names)}" for number, _, names in others)])
