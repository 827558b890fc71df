"""The page: one self-contained HTML file, made from rows only."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from roadict.drawing.curves import Curve, line_plot
from roadict.drawing.markup import render
from roadict.drawing.shown import Shown, shown
from roadict.experiments.figures import Strip, curves, dot_plot
from roadict.experiments.images import GIVEN
from roadict.experiments.plan import Experiment, Panel
from roadict.experiments.published import PAPER_SOURCE, doubts, published
from roadict.experiments.registry import EXPERIMENTS
from roadict.experiments.rows import Row
from roadict.experiments.runner import PICTURES
from roadict.experiments.selection import current
from roadict.experiments.summary import by_iteration, by_method, by_samples, describe_trials, of_experiment
from roadict.experiments.trial import ATOMS, ORIGINAL
from roadict.experiments.verdicts import TOO_FEW, Outcome, Verdict, verdicts

OUTCOMES: tuple[Outcome, ...] = ("reproduced", "partly", "not reproduced", TOO_FEW)


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
    left, right : int
        Indices of the pictures that the slider shows first.
    """

    title: str
    tables: list[Table]
    figure: str = ""
    lines: tuple[Curve, ...] = ()
    pictures: tuple[Shown, ...] = ()
    left: int = 0
    right: int = 0


@dataclass(frozen=True)
class Section:
    """An experiment on the page."""

    experiment: Experiment
    verdicts: list[Verdict]
    parts: list[Part]
    lines: list[Curve]
    trials: str
    seconds: float
    source: str
    commands: list[str]
    versions: list[str]
    machines: list[str]


def make_page(rows: list[Row], folder: Path) -> str:
    """Write the page.

    Parameters
    ----------
    rows : list of rows
        As ``read_folder`` gives them.
    folder : Path
        Holds the pictures; also for the command that is shown.

    Returns
    -------
    str
        HTML.
    """
    selected, left_out = current(rows, EXPERIMENTS.values())
    if not selected:
        raise ValueError(f"{folder} holds no rows of the current settings; run roadict reproduce NAME --out {folder}")
    found = {name: of_experiment(selected, name) for name in EXPERIMENTS}
    sections = [_section(EXPERIMENTS[name], own, folder) for name, own in found.items() if own]
    judged = [section for section in sections if section.experiment.of_paper]
    number = Counter(verdict.outcome for section in judged for verdict in section.verdicts)
    scores = [(outcome, number[outcome]) for outcome in OUTCOMES if number[outcome]]
    values = {"sections": sections, "left_out": left_out, "number": len(selected), "scores": scores}
    return render("experiments", "report.html", **values, doubts=doubts(selected))


def _section(experiment: Experiment, rows: list[Row], folder: Path) -> Section:
    show = _picture_part if experiment.pictures else _recovery_part
    present = {row["settings"]["panel"] for row in rows}
    parts = [show(experiment, panel, rows, folder) for panel in experiment.panels if panel.name in present]
    lines = {line.name: line for part in parts for line in part.lines}
    return Section(
        experiment,
        verdicts(rows),
        parts,
        sorted(lines.values(), key=lambda line: line.colour),
        describe_trials(rows, {method.name: method.label for method in experiment.methods if not method.fixed}),
        sum(row["seconds"]["cpu"] for row in rows),
        ", ".join(sorted({_source(row) for row in rows} - {""})),
        commands(experiment, rows, folder),
        sorted({", ".join(f"{name} {number}" for name, number in row["versions"].items()) for row in rows}),
        sorted({row["machine"] for row in rows}),
    )


def commands(experiment: Experiment, rows: list[Row], folder: Path) -> list[str]:
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
    out = f"--out {folder}" + (" --data FOLDER" if given else "")
    head = f"roadict reproduce {experiment.name}"
    if not road:
        shares = shares[1:]
    if len({number for _, number, _ in shares}) == 1:
        return [f"{head} --trials {shares[0][1]}{shares[0][2]} {out}"]
    return [f"{head} --methods {name} --trials {number}{engine} {out}" for name, number, engine in shares if number]


def _source(row: Row) -> str:
    return str(row["settings"]["problem"].get("source", ""))


def _recovery_part(experiment: Experiment, panel: Panel, rows: list[Row], _: Path) -> Part:
    labels = {method.name: method.label for method in experiment.methods}
    along = any(getattr(problem, "trace", False) for problem in panel.problems)
    values = by_iteration(rows, panel.name) if along else by_samples(rows, panel.name)
    lines = curves(values, labels)
    x_label = "iterations" if along else "samples"
    figure = line_plot(lines, x_label, log_x=along, title=f"{experiment.title}: {panel.title}")
    tables = []
    for measure, matching in (("error", "optimal matching"), ("error_greedy", "the paper's greedy matching")):
        by_number = by_samples(rows, panel.name, measure)
        numbers = sorted({n for points in by_number.values() for n in points})
        body = [
            (label, [_mean(by_number[name].get(n, []), "{:.2g}") for n in numbers])
            for name, label in labels.items()
            if name in by_number
        ]
        tables.append(Table(f"mean error, {matching}", [f"N = {n:g}" for n in numbers], body))
    return Part(panel.title, tables, figure, tuple(lines))


def _picture_part(experiment: Experiment, panel: Panel, rows: list[Row], folder: Path) -> Part:
    labels = {method.name: method.label for method in experiment.methods}
    values = by_method(rows, panel.name)
    best = max(values, key=lambda name: float(np.mean(values[name])))
    body = [
        (
            label,
            [
                replace(_mean(values[name], "{:.2f} dB"), best=name == best),
                _deviation(values[name]),
                Cell(str(len(values[name]))),
                _paper_cell(published(experiment.name, panel.name, name)),
            ],
        )
        for name, label in labels.items()
        if name in values
    ]
    strips = [
        Strip(label, _kind(name), values[name], published(experiment.name, panel.name, name))
        for name, label in labels.items()
        if name in values
    ]
    figure = dot_plot(strips, f"{experiment.title}: {panel.title}, PSNR by method")
    table = Table("PSNR", ["mean", "standard deviation", "trials", "in the paper"], body)
    pictures = _pictures(panel, rows, labels, folder)
    indices = {picture.label: index for index, picture in enumerate(pictures)}
    left, right = (indices.get(labels[name], 0) for name in ("bicubic", "road-lasso"))
    return Part(panel.title, [table], figure, pictures=pictures if len(pictures) > 1 else (), left=left, right=right)


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


def _pictures(panel: Panel, rows: list[Row], labels: dict[str, str], folder: Path) -> tuple[Shown, ...]:
    """The original and the available pictures of the first seed, in the order of the labels."""
    own = [row for row in rows if row["settings"]["panel"] == panel.name]
    seed = min(row["settings"]["seed"] for row in own)
    first = {row["settings"]["method"]["name"]: row for row in own if row["settings"]["seed"] == seed}

    def read(name: str, ending: str = "") -> bytes:
        path = folder / PICTURES / f"{first[name]['key']}{ending}.png"
        return path.read_bytes() if path.is_file() else b""

    found = []
    if "bicubic" in first and (raw := read("bicubic", ORIGINAL)):
        found.append(shown("original", None, raw))
    for name, label in labels.items():
        if name in first and (raw := read(name)):
            found.append(shown(label, first[name]["result"]["psnr"], raw, read(name, ATOMS)))
    return tuple(found)


def shown_verdicts(rows: list[Row]) -> list[Verdict]:
    """Verdicts from the rows on the page."""
    return verdicts(current(rows, EXPERIMENTS.values())[0])
