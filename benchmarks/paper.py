"""Write docs/results, README's blocks and what the additions contribute, from the rows of roadict reproduce.

python benchmarks/paper.py DIR [DIR ...], with output folders of reproduce, from this machine or others. The rows are
stored beside the results, in docs/results/rows; roadict report docs/results/rows makes docs/results/report.html again.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

from roadict.experiments.intervals import needed
from roadict.experiments.judgement import DEFAULTS, FOUND, GREEDY, MIN_TRIALS, OUTCOMES, PAPER, TOO_FEW
from roadict.experiments.methods import BASELINES
from roadict.experiments.page import make_report, origins
from roadict.experiments.published import doubts, published, unjudged
from roadict.experiments.registry import EXPERIMENTS
from roadict.experiments.rows import PACKED, pack, read_folder, read_folders
from roadict.experiments.selection import current
from roadict.experiments.summary import by_method, by_samples, by_seed, describe_trials, of_experiment
from roadict.experiments.verdicts import verdicts
from roadict.files.atomic import atomic_write
from roadict.plotting import save_figure

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "docs"), str(ROOT / "benchmarks")]

import blocks  # noqa: E402
from figures import for_dark_pages  # noqa: E402
from paper_figures import problems_figure, recovery_figure, success_figure, table_figure  # noqa: E402
from results import table  # noqa: E402
from success import ablation_words, gains_words, success_words  # noqa: E402

RESULTS, SUCCESS, GAINS = "results", "success", "gains"
"""Names of the blocks that are written into pages, between two comments."""
MAX_STORED = 3_000_000
"""Bytes of stored rows that the repository takes."""


def main(folders, root=ROOT):
    """Write figures, summary, rows, page, and the blocks of README and "From the paper to the code"."""
    rows = joined(folders)
    block, packed = headline(rows), compressed(rows)
    texts = {
        path: with_blocks(path, own)
        for path, own in {
            root / "README.md": {SUCCESS: success_words(rows, "docs/results/"), RESULTS: block},
            root / "docs" / "paper-to-code.md": {GAINS: gains_words(rows)},
        }.items()
    }
    target = root / "docs" / "results"
    texts[target / "README.md"] = summary(rows, block)
    target.mkdir(parents=True, exist_ok=True)  # from here on nothing is refused: what is written belongs together
    for name, figure in drawn(rows).items():
        save_figure(figure, target / f"{name}.png", dpi=130)
        save_figure(for_dark_pages(figure), target / f"{name}-dark.png", dpi=130)  # the site shows it on dark pages
    store(packed, target)
    for path, text in texts.items():
        with atomic_write(path) as file:
            file.write(text.encode())


def drawn(rows):
    """Figures by name: of every experiment with rows, and of success over the number of samples."""
    figures = {}
    for name, experiment in EXPERIMENTS.items():
        if own := of_experiment(rows, name):
            if experiment.of_paper:
                figures[name] = (table_figure if experiment.pictures else recovery_figure)(experiment, own)
            else:
                figures[name] = problems_figure(experiment, own)
    if (success := success_figure(rows)) is not None:
        figures["success"] = success
    return figures


def joined(folders):
    """Rows of the current plans from all folders, each key once."""
    used, skipped = current(read_folders(map(Path, folders)), EXPERIMENTS.values())
    print(f"{len(used)} rows; skipped {skipped} of other settings or code, or of trials that another engine ran too")
    return used


def compressed(rows):
    """The rows as files, by experiment."""
    packed = {name: pack(own) for name in EXPERIMENTS if (own := of_experiment(rows, name))}
    size = sum(map(len, packed.values()))
    if size > MAX_STORED:
        raise ValueError(f"the rows take {size:,} bytes compressed, and at most {MAX_STORED:,} may be stored")
    return packed


def store(packed, target):
    """Write the compressed rows, and the page that roadict report makes of them, without the pictures."""
    folder = target / "rows"
    folder.mkdir(exist_ok=True)
    for name, content in packed.items():
        with atomic_write(folder / f"{name}{PACKED}") as file:
            file.write(content)
    for name in EXPERIMENTS.keys() - packed.keys():
        (folder / f"{name}{PACKED}").unlink(missing_ok=True)
    with atomic_write(target / "report.html") as file:
        file.write(make_report(read_folder(folder), [folder]).page.encode())


def marked(name, block):
    """A block between its two comments."""
    return f"<!-- {name}: python benchmarks/paper.py DIR -->\n{block}\n<!-- /{name} -->"


def with_blocks(path, contents):
    """The text of a page with these contents in its blocks."""
    text = path.read_text(encoding="utf-8")
    for name, content in contents.items():
        try:
            text = blocks.replaced(text, name, content)
        except ValueError as missing:
            raise ValueError(f"{path.name}: {missing}") from None
    return text


def headline(rows):
    """The headline: who finds the dictionary, how many claims hold, samples needed, PSNR, number of trials."""
    needed_head = ["", "ROAD, ρ = 10", "ROAD, our defaults", "best of the others", "trials of each"]
    psnr_head = ["", "ROAD, ρ = 10", "ROAD", "best of the others", "random patches", "trials of each"]
    parts = [
        ablation_words(rows),
        claims(rows),
        below(
            f"Samples until the mean recovery error stays below {FOUND:g}, interpolated between the numbers that were "
            "tried; 95 % intervals, of the trials, not of the interpolation:",
            needed_head,
            recovery_lines(rows),
        ),
        below("PSNR of enlarged pictures, all patches coded by the Lasso:", psnr_head, picture_lines(rows)),
    ]
    return "\n\n".join(part for part in parts if part)


def claims(rows):
    """How many claims hold; tentative ones are counted apart."""
    found = [verdict for verdict in verdicts(rows) if not verdict.ours]
    if not found:
        return ""
    number = Counter(verdict.outcome for verdict in found if not verdict.tentative)
    words = {outcome: "with too few rows" if outcome == TOO_FEW else outcome for outcome in OUTCOMES}
    parts = [f"{number[outcome]} {words[outcome]}" for outcome in OUTCOMES if number[outcome]]
    if tentative := sum(verdict.tentative for verdict in found):
        parts.append(f"{tentative} tentative, from fewer than {MIN_TRIALS} trials")
    return f"Of the paper's {len(found)} claims: {', '.join(parts)}.{unfinished(found)}"


def unfinished(found):
    """Which experiments lack rows, in words."""
    counts = {EXPERIMENTS[verdict.experiment].paper: (verdict.rows, verdict.planned) for verdict in found}
    parts = [f"{name} has {rows:,} of {planned:,} rows" for name, (rows, planned) in counts.items() if rows < planned]
    return f" Not complete: {', '.join(parts)}." if parts else ""


def recovery_lines(rows):
    lines = []
    for experiment, panel in panels(rows, pictures=False):
        traced = any(problem.trace for problem in panel.problems)
        seeds = by_seed(of_experiment(rows, experiment.name), panel.name)
        if traced or PAPER not in seeds or not experiment.of_paper:
            continue
        labels = {method.name: method.label for method in experiment.methods}
        numbers = {problem.n_samples for problem in panel.problems}  # all of them: methods are compared on one grid
        complete = {
            name: points for name, points in seeds.items() if points.keys() == numbers and common_seeds([points])
        }
        shared = common_seeds(complete.values()) if complete else []
        found = {name: samples_needed(points, shared) for name, points in complete.items() if shared}
        others = [name for name in labels if name in found and not name.startswith("road")]
        best = min(others, key=lambda name: (found[name][0].interval.value, found[name][1]), default="")
        cells = [str(found[name][0]) if name in found else "–" for name in (PAPER, DEFAULTS, best)]
        cells[2] = f"{cells[2]} ({labels[best]})" if best else "–"
        lines.append([f"{experiment.paper}: {panel.title}", *cells, len(shared) or "–"])
    return lines


def samples_needed(points, seeds):
    """Samples needed on these seeds, from errors by number of samples and seed; and the error at the last number."""
    numbers = sorted(points)
    errors = np.array([[points[n][seed] for n in numbers] for seed in seeds])
    return needed(numbers, errors, FOUND), errors[:, -1].mean()


def common_seeds(compared):
    """Seeds that methods have in common, at all numbers of samples."""
    return sorted(set.intersection(*(set(errors) for points in compared for errors in points.values())))


def picture_lines(rows):
    lines = []
    for experiment, panel in panels(rows, pictures=True):
        values = by_method(of_experiment(rows, experiment.name), panel.name)
        baselines = [f"{name}-lasso{long}" for name in BASELINES for long in ("", "-long")]
        others = [name for name in baselines if name in values]
        best = max(others, key=lambda name: np.mean(values[name]), default="")
        labels = {method.name: method.label.removesuffix(", Lasso") for method in experiment.methods}
        shown = ("road-paper-lasso", "road-lasso", best, "random-lasso")
        cells = [decibels(values, name) for name in shown]
        cells[2] += f" ({labels[best]})" if best else ""
        number = trials_of_each([{0: values[name]} if name in values else {} for name in shown])
        lines.append([f"{experiment.paper}: {experiment.name}, {panel.title}", *cells, number])
    return lines


def summary(rows, block):
    """All results as Markdown."""
    parts = [
        "# The paper, recomputed",
        "Written by `python benchmarks/paper.py` from rows of `roadict reproduce`; every number comes from them. An "
        "error is one minus the mean correlation of the true atoms with their matched learned ones. Settings, bounds: "
        "[decision 10](../decisions/0010-experiments.md).",
        success_words(rows, ""),
        marked(RESULTS, block),
        "The rows are in `docs/results/rows`, compressed; `roadict report docs/results/rows` makes the page "
        "[report.html](report.html) of them.",
        "## Claims and verdicts",
        table(
            ["", "claim", "verdict", "why"],
            [[EXPERIMENTS[v.experiment].paper, v.claim, v.label, v.reason] for v in verdicts(rows)],
        ),
        "## Where the paper did not hold, or only in part",
        "\n".join(f"- {line}" for line in failures(rows)),
    ]
    for name, experiment in EXPERIMENTS.items():
        own = of_experiment(rows, name)
        if own:
            parts += section(experiment, own)
    return "\n\n".join(part for part in parts if part) + "\n"


def failures(rows):
    """Claims that did not hold, and inconsistencies in the paper's tables."""
    found = [
        f"{EXPERIMENTS[verdict.experiment].paper}, {verdict.claim}: {verdict.label}."
        for verdict in verdicts(rows)
        if verdict.outcome in ("partly", "not reproduced") and not verdict.ours
    ]
    return [*found, *unjudged(rows, verdicts(rows)), *doubts(rows)] or ["Nowhere in these rows."]


def section(experiment, rows):
    """One figure or table of the paper."""
    sources = sorted({row["settings"]["problem"].get("source", "") for row in rows} - {""})
    engines = engine_summary(rows)
    parts = [
        f"## {experiment.paper}: {experiment.title}",
        f"{'The paper' if experiment.of_paper else 'Our claim'}: {experiment.claim}",
        experiment.note + (f" Pictures: {', '.join(sources)}." if sources else ""),
        f"![{experiment.title}]({experiment.name}.png)",
    ]
    for verdict in verdicts(rows):
        evidence = table(verdict.table[0], verdict.table[1:]) if verdict.table else ""
        basis = f" ({verdict.basis})" if verdict.basis else ""
        parts += [f"**{verdict.claim}: {verdict.label}.** {verdict.reason}{basis}", *([evidence] if evidence else [])]
    for panel in experiment.panels:
        body = picture_body if experiment.pictures else recovery_body
        parts += body(experiment, panel, rows)
    minutes = sum(row["seconds"]["cpu"] for row in rows) / 60
    numbers = describe_trials(rows, {method.name: method.label for method in experiment.methods if not method.fixed})
    parts.append(f"Trials: {numbers}. {len(rows)} rows, {minutes:.1f} minutes of CPU or GPU.{engines}")
    parts.append("\n".join(f"- {line}" for line in origins(rows)))
    return parts


def engine_summary(rows):
    """Engines of ROAD, with their numbers of rows if there are several."""
    number = Counter(row["settings"]["engine"] for row in rows if row["settings"]["engine"])
    engines = ", ".join(name if len(number) == 1 else f"{name} ({number[name]} rows)" for name in sorted(number))
    return f" Engine of ROAD: {engines}." if engines else ""


def recovery_body(experiment, panel, rows):
    parts = []
    for measure, words in (("error", "optimal matching"), ("error_greedy", GREEDY)):
        values = by_samples(rows, panel.name, measure)
        numbers = sorted({n for points in values.values() for n in points})
        lines = [
            [method.label, *(mean(values[method.name].get(n)) for n in numbers), trials([values[method.name]])]
            for method in experiment.methods
            if method.name in values
        ]
        if lines:
            parts += [
                f"{panel.title}: mean error, {words}",
                table(["", *(f"N = {n:g}" for n in numbers), "trials"], lines),
            ]
    return parts


def picture_body(experiment, panel, rows):
    values = by_method(rows, panel.name)
    lines = []
    for method in experiment.methods:
        if method.name in values:
            own, paper = values[method.name], published(experiment.name, panel.name, method.name)
            deviation = f"{np.std(own, ddof=1):.2f}" if len(own) > 1 else "–"
            theirs = "–" if paper is None else f"{paper:.2f}"
            lines.append([method.label, f"{np.mean(own):.2f}", deviation, theirs, len(own)])
    head = ["", "PSNR, dB", "standard deviation", "in the paper", "trials"]
    return [panel.title, table(head, lines)] if lines else []


def panels(rows, *, pictures):
    """Experiments and panels that have rows."""
    there = {(row["settings"]["experiment"], row["settings"]["panel"]) for row in rows}
    for name, experiment in EXPERIMENTS.items():
        for panel in experiment.panels:
            if bool(experiment.pictures) == pictures and (name, panel.name) in there:
                yield experiment, panel


def trials(values):
    """Number of trials of some points, or its range."""
    numbers = sorted({len(found) for points in values for found in points.values()})
    return f"{numbers[0]}–{numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]}" if numbers else "–"


def trials_of_each(columns):
    """The same for some columns: one number if all have as many, else one each, in order."""
    numbers = [trials([points]) for points in columns]
    return numbers[0] if len({*numbers} - {"–"}) == 1 and numbers[0] != "–" else " / ".join(numbers)


def mean(values):
    return f"{np.mean(values):.2g}" if values else "–"


def decibels(values, name):
    return f"{np.mean(values[name]):.2f} dB" if name in values else "–"


def below(sentence, header, lines):
    """A sentence with the table that it introduces; nothing if there are no lines."""
    return f"{sentence}\n\n{table(header, lines)}" if lines else ""


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
