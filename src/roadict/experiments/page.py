"""The page: one HTML file that needs nothing else, made from rows only."""

import base64
import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from roadict.experiments.figures import Curve, curves, line_plot
from roadict.experiments.plan import Experiment, Panel
from roadict.experiments.registry import EXPERIMENTS
from roadict.experiments.rows import Row
from roadict.experiments.runner import PICTURES
from roadict.experiments.selection import current
from roadict.experiments.summary import by_iteration, by_method, by_samples, of_experiment
from roadict.experiments.trial import ATOMS
from roadict.experiments.verdicts import Verdict, verdicts

TEMPLATE = "page.html"
ZOOM = 4
"""The close-up shows this part of the height and of the width."""


@dataclass(frozen=True)
class Cell:
    """A number of a table: as shown, and in full."""

    text: str
    value: float | None = None


@dataclass(frozen=True)
class Table:
    """A table of the page."""

    caption: str
    header: list[str]
    body: list[tuple[str, list[Cell]]]


@dataclass(frozen=True)
class Shown:
    """An enlarged picture: whole and in part, and the atoms that made it, as data URIs ("": there are none)."""

    label: str
    psnr: float
    whole: str
    part: str
    atoms: str


@dataclass(frozen=True)
class Part:
    """A panel as the page shows it: a figure with its curves, or pictures; and tables."""

    title: str
    figure: str
    lines: list[Curve]
    tables: list[Table]
    pictures: list[Shown]


@dataclass(frozen=True)
class Section:
    """An experiment as the page shows it."""

    experiment: Experiment
    verdicts: list[Verdict]
    parts: list[Part]
    trials: int
    seconds: float
    source: str
    command: str
    versions: list[str]
    machines: list[str]


def make_page(rows: list[Row], folder: Path) -> str:
    """Write the page.

    Parameters
    ----------
    rows : list of rows
        As ``read_folder`` gives them.
    folder : Path
        Of the pictures, and for the command that is shown.

    Returns
    -------
    str
        HTML.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    kept, left_out = current(rows, EXPERIMENTS.values())
    if not kept:
        raise ValueError(f"{folder} holds no rows of the present settings; run roadict reproduce NAME --out {folder}")
    found = {name: of_experiment(kept, name) for name in EXPERIMENTS}
    sections = [_section(EXPERIMENTS[name], own, folder) for name, own in found.items() if own]
    environment = Environment(
        loader=PackageLoader("roadict.experiments", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template(TEMPLATE).render(sections=sections, left_out=left_out, number=len(kept))


def _section(experiment: Experiment, rows: list[Row], folder: Path) -> Section:
    show = _picture_part if experiment.pictures else _recovery_part
    present = {row["settings"]["panel"] for row in rows}
    trials = len({row["settings"]["seed"] for row in rows})
    data = " --data FOLDER" if any("paper" in _source(row) for row in rows) else ""
    return Section(
        experiment,
        verdicts(rows),
        [show(experiment, panel, rows, folder) for panel in experiment.panels if panel.name in present],
        trials,
        sum(row["seconds"]["cpu"] for row in rows),
        ", ".join(sorted({_source(row) for row in rows} - {""})),
        f"roadict reproduce {experiment.name} --trials {trials} --out {folder}{data}",
        sorted({", ".join(f"{name} {number}" for name, number in row["versions"].items()) for row in rows}),
        sorted({row["machine"] for row in rows}),
    )


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
    for measure, words in (("error", "optimal matching"), ("error_greedy", "the paper's greedy matching")):
        by_number = by_samples(rows, panel.name, measure)
        numbers = sorted({n for points in by_number.values() for n in points})
        body = [
            (label, [_mean(by_number[name].get(n, []), "{:.2g}") for n in numbers])
            for name, label in labels.items()
            if name in by_number
        ]
        tables.append(Table(f"Mean error, {words}", [f"N = {n:g}" for n in numbers], body))
    return Part(panel.title, figure, lines, tables, [])


def _picture_part(experiment: Experiment, panel: Panel, rows: list[Row], folder: Path) -> Part:
    labels = {method.name: method.label for method in experiment.methods}
    values = by_method(rows, panel.name)
    body = [
        (label, [_mean(values[name], "{:.2f} dB"), _deviation(values[name]), Cell(str(len(values[name])))])
        for name, label in labels.items()
        if name in values
    ]
    table = Table("PSNR", ["mean", "standard deviation", "trials"], body)
    return Part(panel.title, "", [], [table], _pictures(panel, rows, labels, folder))


def _mean(values: list[float], form: str) -> Cell:
    if not values:
        return Cell("–")
    mean = float(np.mean(values))
    return Cell(form.format(mean), mean)


def _deviation(values: list[float]) -> Cell:
    return Cell(f"{np.std(values, ddof=1):.2f}") if len(values) > 1 else Cell("–")


def _pictures(panel: Panel, rows: list[Row], labels: dict[str, str], folder: Path) -> list[Shown]:
    """The pictures of the first seed that has them, in the order of the labels."""
    own = [row for row in rows if row["settings"]["panel"] == panel.name]
    seeds = Counter(row["settings"]["seed"] for row in own)
    first = {row["settings"]["method"]["name"]: row for row in own if row["settings"]["seed"] == min(seeds)}
    shown = []
    for name, label in labels.items():
        path = folder / PICTURES / f"{first[name]['key']}.png" if name in first else None
        if path is not None and path.is_file():
            raw = path.read_bytes()
            sheet = path.with_name(f"{path.stem}{ATOMS}.png")
            atoms = _uri(sheet.read_bytes()) if sheet.is_file() else ""
            shown.append(Shown(label, first[name]["result"]["psnr"], _uri(raw), _uri(_close_up(raw)), atoms))
    return shown


def _close_up(raw: bytes) -> bytes:
    """The middle of a picture, the same for all methods; a small picture is shown whole."""
    from PIL import Image

    with Image.open(io.BytesIO(raw)) as picture:
        width, height = picture.size
        if width < 25 * ZOOM:
            return raw
        left, top = (length * (ZOOM - 1) // (2 * ZOOM) for length in (width, height))
        file = io.BytesIO()
        picture.crop((left, top, left + width // ZOOM, top + height // ZOOM)).save(file, "png")
    return file.getvalue()


def _uri(raw: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(raw).decode()


def told(rows: list[Row]) -> list[Verdict]:
    """Verdicts of the rows that the page shows."""
    return verdicts(current(rows, EXPERIMENTS.values())[0])
