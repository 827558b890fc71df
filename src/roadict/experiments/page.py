"""The page: one self-contained HTML file, made from rows only."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from roadict.drawing.curves import Curve, Spread, line_plot, percent
from roadict.drawing.markup import render
from roadict.drawing.shown import Shown, shown, with_differences
from roadict.experiments.figures import Strip, curves, dot_plot, found_share, ranked, share_plot
from roadict.experiments.images import GIVEN
from roadict.experiments.judgement import FOUND, GREEDY, MIN_TRIALS, OUTCOMES, Verdict
from roadict.experiments.plan import Experiment, Panel, PlantedProblem
from roadict.experiments.provenance import UNKNOWN
from roadict.experiments.published import PAPER_SOURCE, doubts, published, unjudged
from roadict.experiments.registry import EXPERIMENTS
from roadict.experiments.rows import Row
from roadict.experiments.runner import PICTURES
from roadict.experiments.selection import current, is_of_this_code
from roadict.experiments.summary import (
    Values,
    by_iteration,
    by_method,
    by_samples,
    describe_trials,
    not_run,
    of_experiment,
    planned_rows,
)
from roadict.experiments.trial import ATOMS, ORIGINAL
from roadict.experiments.verdicts import verdicts
from roadict.wording import plural


@dataclass(frozen=True)
class Cell:
    """A cell of a table: text, full value, and whether it is the best of its column."""

    text: str
    value: float | None = None
    best: bool = False


@dataclass(frozen=True)
class Table:
    """A table of the page."""

    caption: str
    header: list[str]
    body: list[tuple[str, list[Cell]]]


@dataclass(frozen=True)
class Part:
    """A panel on the page: a figure with its curves, or pictures; and tables.

    Attributes
    ----------
    full : float
        Difference from the original from which on its colour is full; 0: differences are not shown.
    left, right : int
        Indices of the pictures that the slider shows first.
    """

    title: str
    tables: list[Table]
    figure: str = ""
    lines: tuple[Curve, ...] = ()
    pictures: tuple[Shown, ...] = ()
    full: float = 0.0
    left: int = 0
    right: int = 0


@dataclass(frozen=True)
class Section:
    """An experiment on the page.

    Attributes
    ----------
    number, planned : int
        Rows, and how many a complete run has.
    group : str
        Of methods that have no rows at all: "road" or "others"; planned rows are without theirs.
    absent : list of str
        Their names.
    other_code : int
        Rows that other code than this made.
    origins : list of str
        Commits, versions and machines, with their numbers of rows.
    """

    experiment: Experiment
    verdicts: list[Verdict]
    parts: list[Part]
    trials: str
    seconds: float
    source: str
    commands: list[str]
    number: int
    planned: int
    group: str
    absent: list[str]
    other_code: int
    origins: list[str]

    @property
    def recovery(self) -> bool:
        """Whether its figures have lines."""
        return any(part.lines for part in self.parts)

    @property
    def cut(self) -> bool:
        """Whether lines end early."""
        return any(line.ends_early for part in self.parts for line in part.lines)


@dataclass(frozen=True)
class Report:
    """The page as HTML, the verdicts on it, and the number of rows that it does not show."""

    page: str
    verdicts: list[Verdict]
    left_out: int


def make_report(rows: list[Row], folders: Sequence[Path]) -> Report:
    """Judge the rows and write the page.

    Parameters
    ----------
    rows : list of rows
        As ``read_folders`` gives them.
    folders : sequence of Path
        Hold the pictures.

    Returns
    -------
    Report
    """
    selected, left_out = current(rows, EXPERIMENTS.values())
    if not selected:
        names = " and ".join(map(str, folders))
        raise ValueError(
            f"{names} holds no rows of the current settings; run roadict reproduce NAME --out {folders[0]}"
        )
    found = {name: of_experiment(selected, name) for name in EXPERIMENTS}
    sections = [_section(EXPERIMENTS[name], own, folders) for name, own in found.items() if own]
    all_judged = [verdict for section in sections for verdict in section.verdicts]
    judged = [verdict for verdict in all_judged if EXPERIMENTS[verdict.experiment].of_paper]
    number = Counter(verdict.outcome for verdict in judged if not verdict.tentative)
    page = render(
        "experiments",
        "report.html",
        sections=sections,
        left_out=left_out,
        number=len(selected),
        planned=sum(section.planned for section in sections),
        one_sided=[
            (group, own) for group in ("others", "road") if (own := [each for each in sections if each.group == group])
        ],
        scores=[(outcome, number[outcome]) for outcome in OUTCOMES if number[outcome]],
        tentative=sum(verdict.tentative for verdict in judged),
        min_trials=MIN_TRIALS,
        found=f"{FOUND:g}",
        doubts=[*unjudged(selected, judged), *doubts(selected)],
    )
    return Report(page, all_judged, left_out)


def _section(experiment: Experiment, rows: list[Row], folders: Sequence[Path]) -> Section:
    show = _picture_part if experiment.pictures else _recovery_part
    present = {row["settings"]["panel"] for row in rows}
    group, absent = not_run(rows, experiment)
    return Section(
        experiment=experiment,
        verdicts=verdicts(rows),
        parts=[show(experiment, panel, rows, folders) for panel in experiment.panels if panel.name in present],
        trials=describe_trials(rows, {method.name: method.label for method in experiment.methods if not method.fixed}),
        seconds=sum(row["seconds"]["cpu"] for row in rows),
        source=", ".join(sorted({_source(row) for row in rows} - {""})),
        commands=commands(experiment, rows),
        number=len(rows),
        planned=planned_rows(rows, experiment),
        group=group,
        absent=absent,
        other_code=sum(not is_of_this_code(row) for row in rows),
        origins=origins(rows),
    )


def origins(rows: Iterable[Row]) -> list[str]:
    """Commits, versions and machines that made rows, with the numbers of rows."""
    made = Counter(
        f"commit {row.get('commit', UNKNOWN)}; {row['machine']}; "
        + ", ".join(f"{name} {number}" for name, number in row["versions"].items())
        for row in rows
    )
    return [f"{plural(number, 'row')}: {text}" for text, number in sorted(made.items())]


def commands(experiment: Experiment, rows: list[Row]) -> list[str]:
    """Commands that reproduce an experiment: two where ROAD had more trials than the others."""
    road = {method.name for method in experiment.methods if method.is_road}
    shares = []
    for name, own in (
        ("road", [row for row in rows if row["settings"]["method"]["name"] in road]),
        ("others", [row for row in rows if row["settings"]["method"]["name"] not in road]),
    ):
        number = len({row["settings"]["seed"] for row in own})
        engines = Counter(row["settings"]["engine"] for row in own)
        engine = max(sorted(engines), key=lambda each: engines[each], default="")
        shares.append((name, number, "" if engine in ("", "auto") else f" --engine {engine}"))
    given = any(_source(row).startswith((PAPER_SOURCE, GIVEN)) for row in rows)
    data = " --data FOLDER" if given else ""
    head = f"roadict reproduce {experiment.name}"
    if not road:
        shares = shares[1:]
    if len({number for _, number, _ in shares}) == 1:
        return [f"{head} --trials {shares[0][1]}{shares[0][2]}{data}"]
    return [f"{head} --methods {name} --trials {number}{engine}{data}" for name, number, engine in shares if number]


def _source(row: Row) -> str:
    return str(row["settings"]["problem"].get("source", ""))


def _recovery_part(experiment: Experiment, panel: Panel, rows: list[Row], _: Sequence[Path]) -> Part:
    labels = {method.name: method.label for method in experiment.methods}
    problems = [problem for problem in panel.problems if isinstance(problem, PlantedProblem)]
    along = any(problem.trace for problem in problems)
    planned = [] if along else [float(problem.n_samples) for problem in problems]
    lines = curves(by_iteration(rows, panel.name) if along else by_samples(rows, panel.name), labels, planned)
    x_label, title = "iterations" if along else "samples", f"{experiment.title}: {panel.title}"
    # As in the figure: by the end of the line, from top to bottom.
    order = sorted(lines, key=lambda line: -line.points[max(line.points)].mean)
    tables = []
    if experiment.of_paper:
        figure = line_plot(lines, x_label, log_x=along, title=title, planned=planned)
    else:
        figure, table = _success(by_samples(rows, panel.name), labels, planned, title)
        tables.append(table)
    for measure, matching in (("error", "optimal matching"), ("error_greedy", GREEDY)):
        by_number = by_samples(rows, panel.name, measure)
        numbers = sorted({n for points in by_number.values() for n in points})
        body = [
            (line.label, [_mean(by_number[line.name].get(n, []), "{:.2g}") for n in numbers])
            for line in order
            if line.name in by_number
        ]
        tables.append(Table(f"mean error, {matching}", [f"N = {n:g}" for n in numbers], body))
    return Part(panel.title, tables, figure, tuple(lines))


def _success(values: Values, labels: dict[str, str], planned: Sequence[float], title: str) -> tuple[str, Table]:
    """Shares of trials that find the dictionary: lines over the number of samples, or dots where there is one."""
    lines = curves(values, labels, planned, found_share)
    numbers = sorted({at for line in lines for at in line.points})
    if len(planned) == 1:
        figure = share_plot(lines, numbers[0], title)
    else:
        figure = line_plot(lines, "samples", y_label="share of the trials", title=title, planned=planned, shares=True)
    body = [(line.label, [_share_cell(line.points.get(n)) for n in numbers]) for line in lines]
    return figure, Table(f"trials with an error below {FOUND:g}", [f"N = {n:g}" for n in numbers], body)


def _share_cell(point: Spread | None) -> Cell:
    return Cell("–") if point is None else Cell(f"{percent(point.mean)} of {point.number}", point.mean)


def _picture_part(experiment: Experiment, panel: Panel, rows: list[Row], folders: Sequence[Path]) -> Part:
    values = by_method(rows, panel.name)
    strips = ranked(
        [
            Strip(
                method.name,
                method.label,
                _kind(method.name),
                values[method.name],
                published(experiment.name, panel.name, method.name),
            )
            for method in experiment.methods
            if method.name in values
        ]
    )
    body = [
        (
            strip.label,
            [
                replace(_mean(strip.values, "{:.2f} dB"), best=strip is strips[0]),
                _deviation(strip.values),
                Cell(str(len(strip.values))),
                _paper_cell(strip.paper),
            ],
        )
        for strip in strips
    ]
    figure = dot_plot(strips, f"{experiment.title}: {panel.title}, PSNR by method")
    table = Table("PSNR", ["mean", "standard deviation", "trials", "in the paper"], body)
    labels = {strip.name: strip.label for strip in strips}
    pictures, full = _pictures(panel, rows, labels, folders)
    indices = {name: index for index, name in enumerate(pictures)}
    left, right = (indices.get(name, 0) for name in ("bicubic", "road-lasso"))
    found = tuple(pictures.values()) if len(pictures) > 1 else ()
    return Part(panel.title, [table], figure, (), found, full, left, right)


def _kind(name: str) -> str:
    return "ours" if name.startswith("road") else "bare" if name.startswith(("bicubic", "random")) else ""


def _paper_cell(value: float | None) -> Cell:
    return Cell("–" if value is None else f"{value:.2f} dB")


def _mean(values: list[float], form: str) -> Cell:
    if not values:
        return Cell("–")
    mean = float(np.mean(values))
    return Cell(form.format(mean), mean)


def _deviation(values: list[float]) -> Cell:
    return Cell(f"{np.std(values, ddof=1):.2f}") if len(values) > 1 else Cell("–")


def _pictures(
    panel: Panel, rows: list[Row], labels: dict[str, str], folders: Sequence[Path]
) -> tuple[dict[str, Shown], float]:
    """The original and the available pictures of the first seed, in the order of the labels, and their differences."""
    own = [row for row in rows if row["settings"]["panel"] == panel.name]
    seed = min(row["settings"]["seed"] for row in own)
    first = {row["settings"]["method"]["name"]: row for row in own if row["settings"]["seed"] == seed}

    def read(name: str, ending: str = "") -> bytes:
        paths = (folder / PICTURES / f"{first[name]['key']}{ending}.png" for folder in folders)
        return next((path.read_bytes() for path in paths if path.is_file()), b"")

    found = {}
    for name, label in labels.items():
        if name in first and (raw := read(name)):
            found[name] = shown(label, first[name]["result"]["psnr"], raw, read(name, ATOMS)), raw
    original = read("bicubic", ORIGINAL) if "bicubic" in first else b""
    if not original:
        return {name: picture for name, (picture, _) in found.items()}, 0.0
    compared, full = with_differences(found, original)
    return {"original": shown("original", None, original)} | compared, full
