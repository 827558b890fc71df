"""Sphinx extension: charts drawn from the tables of benchmarks/RESULTS.md, as SVG in the colours of the page.

A page writes ``{chart} coders``; the page "Performance" gets a chart in every section that has one.
"""

import re
from html import escape
from pathlib import Path

import numpy as np
from docutils import nodes
from docutils.parsers.rst import Directive

from roadict.drawing.charts import Chart, Scale, element, svg, text
from roadict.drawing.curves import spaced

RESULTS = Path(__file__).parents[1] / "benchmarks" / "RESULTS.md"
COLOURS = {"ROAD": 0, "roadict": 0, "SPORCO": 1, "SPAMS": 2, "scikit-learn": 3, "dictlearn": 4}
COLOURS |= {"K-SVD": 1, "BM3D": 2, "noisy": 4, "second use": 4}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 440, 270, 46, 92, 26, 44
LABEL_GAP = 14
"""Smallest distance of two labels in pixels."""


def sections():
    """Texts of the sections of RESULTS.md by title."""
    parts = re.split(r"^## ", RESULTS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {part.split("\n", 1)[0]: part for part in parts}


def rows(title, table=0):
    """Rows of a table of a section, as dictionaries by column; the second column of a name is "NAME 2"."""
    blocks = re.findall(r"(?:^\|.*\n)+", sections()[title], flags=re.MULTILINE)
    lines = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in blocks[table].splitlines()]
    header = [f"{name} 2" if name in lines[0][:i] else name for i, name in enumerate(lines[0])]
    return [dict(zip(header, line, strict=True)) for line in lines[2:]]


def number(cell):
    """The number that a cell begins with."""
    return float(re.match(r"[-\d.,e]+", cell.replace("*", ""))[0].replace(",", ""))


# Lines.


def over_time(found, title, y_title, bounds=None):
    """A panel: a line per learner over the columns in seconds, labelled at its end."""
    marks = [column for column in found[0] if re.fullmatch(r"[\d.]+ s", column)]
    seconds = [number(mark) for mark in marks]
    values = {row["learner"]: [number(row[mark]) if row[mark] else np.nan for mark in marks] for row in found}
    values = {name: course for name, course in values.items() if np.isfinite(course).any()}
    measured = np.isfinite([*values.values()]).any(axis=0)
    lines = {name: (np.array(seconds)[measured], np.array(course)[measured]) for name, course in values.items()}
    return panel(lines, title, "seconds", y_title, bounds=bounds)


def panel(lines, title, x_title, y_title, *, bounds=None, log_y=False):
    """A panel with lines of points by name; values beyond the bounds are drawn at them."""
    xs = sorted({x for at, _ in lines.values() for x in at})
    ys = np.concatenate([np.array(values, float) for _, values in lines.values()])
    low, high = bounds or (np.nanmin(ys), np.nanmax(ys))
    across, up = Scale(xs[0], xs[-1], LEFT, WIDTH - RIGHT, log=True), Scale(low, high, HEIGHT - BOTTOM, TOP, log=log_y)
    chart = Chart(across, up, 6)
    ticks = [x for x in xs if f"{x:e}"[0] in "15"] if len(xs) > 7 else xs
    parts = [text(LEFT - 6, 14, title, "start", "name ours"), chart.y_axis(), chart.x_axis(x_title, [])]
    parts += [text(float(across(x)), HEIGHT - BOTTOM + 18, f"{x:,g}") for x in ticks]
    ends = {}
    for name, (at, values) in lines.items():
        clipped = np.clip(np.array(values, float), low, high)
        kind = "ours" if COLOURS.get(name) == 0 else ""
        tips = "".join(
            element("g", f"<title>{escape(name)}: {value:g} ({x:g} {x_title})</title>" + chart.dots(x, drawn, 3))
            for x, value, drawn in zip(at, values, clipped, strict=True)
            if np.isfinite(value)
        )
        parts.append(element("g", chart.line(at, clipped, kind) + tips, class_=f"c{COLOURS.get(name, 0)}"))
        last = np.flatnonzero(np.isfinite(clipped))[-1]
        ends[name] = float(up(clipped[last]))
    parts += end_labels(ends)
    return svg(WIDTH, HEIGHT, parts, f"{title}: {y_title} over {x_title}")


def end_labels(ends):
    """Names at the ends of lines, moved apart."""
    parts = []
    heights = spaced([height + 4 for height in ends.values()], LABEL_GAP, TOP, HEIGHT - BOTTOM)
    for name, at in zip(ends, heights, strict=True):
        label = element("text", escape(name), x=WIDTH - RIGHT + 12, y=at, class_="label")
        parts.append(element("g", label, class_=f"c{COLOURS.get(name, 0)}"))
    return parts


# Bars.

BAR, LABELS, VALUES, BARS_WIDTH = 22, 250, 140, 690


def bars(items, title, unit=""):
    """Horizontal bars: items are labels, values and learners; a label that repeats is written once."""
    largest, parts, seen, top = max(value for _, value, _ in items), [], None, 6
    for label, value, learner in items:
        if label != seen:
            top += 8 if seen is not None else 0
            parts.append(text(LABELS - 10, top + 15, label, "end"))
            seen = label
        length = max((BARS_WIDTH - LABELS - VALUES) * value / largest, 1.0)
        bar = element("rect", x=LABELS, y=top + 3, width=float(length), height=BAR - 6, rx=2, class_="bar")
        name = f"{value:,.4g}{unit}" + (f"  {learner}" if learner else "")
        parts.append(
            element("g", bar + text(LABELS + length + 6, top + 15, name, "start"), class_=f"c{COLOURS.get(learner, 0)}")
        )
        top += BAR
    return svg(BARS_WIDTH, top + 6, parts, title, "wide")


# Dots.

DOT_LABELS, DOT_VALUES, DOTS_WIDTH = 285, 165, 740


def dots(items, title, line):
    """Dots on a scale: items are labels, values, ends of their ranges, texts and learners; a line at one value."""
    ends = [line, *(end for _, value, ends, _, _ in items for end in (value, *ends))]
    margin = 0.08 * (max(ends) - min(ends))
    top, right = 6, DOTS_WIDTH - DOT_VALUES
    across = Scale(min(ends) - margin, max(ends) + margin, DOT_LABELS, right)
    chart = Chart(across, Scale(0, len(items), top + BAR * len(items), top))
    at = float(across(line))
    parts = [chart.x_axis(title, grid=True)]
    parts.append(element("line", class_="baseline", x1=at, x2=at, y1=top, y2=float(chart.y.start)))
    for i, (label, value, ends, words, learner) in enumerate(items):
        middle = len(items) - i - 0.5
        height = float(chart.y(middle)) + 4
        parts.append(text(DOT_LABELS - 12, height, label, "end"))
        mark = chart.line(ends, [middle] * len(ends), "ours") + chart.dots(value, middle, 5)
        words = text(right + 12, height, words, "start")
        parts.append(element("g", mark + words, class_=f"c{COLOURS.get(learner, 0)}"))
    return svg(DOTS_WIDTH, top + BAR * len(items) + 44, parts, title, "wide")


# The charts.


def atoms_over_time():
    """Share of atoms found, a panel per problem."""
    found, panels = rows("Atoms found over time"), []
    for key in dict.fromkeys((row["(M, K, S)"], row["N"], row["noise"]) for row in found):
        size, samples, noise = key
        _, atoms, used = re.findall(r"\d+", size)
        lines = [row for row in found if (row["(M, K, S)"], row["N"], row["noise"]) == key]
        title = f"{atoms} atoms, {used} per sample, {samples} samples, {noise}"
        panels.append(over_time(lines, title, "share of atoms found", (0, 1)))
    return panels


def unseen_patches():
    """Objective on unseen patches, a panel per problem; the top is cut, since the first atoms of some are far above."""
    found, panels = rows("Objective on unseen patches over time"), []
    cases = [[row for row in found if (row["K"], row["α"], row["N"]) == key] for key in _keys(found)]
    cases.append([row | {"K": "256", "α": "0.08", "N": "1,000,000"} for row in rows("A million patches")])
    for lines in cases:
        courses = [[cell for column, cell in row.items() if re.fullmatch(r"\d+ s", column) and cell] for row in lines]
        last = [number(course[-1]) for course in courses if course]
        title = f"{lines[0]['K']} atoms, α = {lines[0]['α']}, {lines[0]['N']} patches"
        panels.append(over_time(lines, title, "objective", (min(last) * 0.99, min(last) * 1.1)))
    return panels


def _keys(found):
    return list(dict.fromkeys((row["K"], row["α"], row["N"]) for row in found))


def growth():
    """Milliseconds of an iteration over samples and over atoms."""
    found = rows("Growth with N and K (M = 34, float32)")

    def line(column, fixed, value):
        chosen = [row for row in found if row[fixed] == value]
        return {"roadict": ([number(row[column]) for row in chosen], [number(row["one iteration"]) for row in chosen])}

    times = [number(row["one iteration"]) for row in found]
    wide = {"log_y": True, "bounds": (0.8 * min(times), 1.2 * max(times))}  # one scale for both panels
    return [
        panel(line("N", "K", "64"), "ms per iteration, 64 atoms", "samples", "ms", **wide),
        panel(line("K", "N", "8000"), "ms per iteration, 8,000 samples", "atoms", "ms", **wide),
    ]


def beside_peers():
    """Rows of ROAD's defaults and of other packages at equal CPU time by learner, without those of one start."""
    found = [row for row in rows("ROAD beside its peers") if not row["method"].endswith(", one start")]
    return [(row["method"].strip("*").split(",")[0], row) for row in found]


def peers():
    """Share of atoms recovered, by problem and learner."""
    items = [
        (f"{row['(M, K, S)']}, {row['N']} samples", number(row["atoms recovered"]), learner)
        for learner, row in beside_peers()
    ]
    return [bars(items, "share of atoms recovered at equal CPU time")]


def coders():
    """Seconds for 20,000 samples, both learners on the same threads."""
    items = []
    for row in rows("Coders"):
        label = f"{row['coder']}, {row['threads']} thread{'s' * (row['threads'] != '1')}"
        items += [(label, number(row[name]), name) for name in ("roadict", "scikit-learn")]
    return [bars(items, "seconds", " s")]


def iteration():
    """Times faster than the reference engine."""
    items = [
        (f"{row['(M, K, N)']}, {row['dtype']}, {row['form']}", number(row["... in its faster dtype"]), "")
        for row in rows("One iteration")
    ]
    return [bars(items, "times faster than the reference engine", "×")]


def two_stage():
    """Seconds of a fit, roadict and dictlearn."""
    items = []
    for row in rows("Two-stage methods: speed"):
        label = f"{row['roadict']}, {re.split(r',| [(]', row['problem'])[0]}"
        items += [(label, number(row["a fit"]), "roadict"), (label, number(row["a fit 2"]), "dictlearn")]
    return [bars(items, "seconds of a fit", " s")]


def recovery():
    """Share of trials with an error below 0.01."""
    items = [
        (f"{row['(M, K)']}, {row['codes'].split(', epsilon')[0]}, {row['N']}", number(row["share below 1e-2"]), "")
        for row in rows("Recovery with defaults")
    ]
    return [bars(items, "share of trials that found the atoms")]


def denoising():
    """PSNR of denoised pictures."""
    items = [
        (row["picture"], number(row[column]), name)
        for row in rows("Denoising, σ = 20")
        for column, name in (("noisy", "noisy"), ("roadict (dB)", "roadict"), ("K-SVD", "K-SVD"), ("BM3D", "BM3D"))
    ]
    return [bars(items, "PSNR", " dB")]


def _learner(cell):
    """Name and package of a learner that is told as code."""
    code = cell.strip("`")
    return (code, "roadict") if "ROAD" in code else (re.sub(r"^\w+\(.*", "scikit-learn", code), "scikit-learn")


def denoising_half():
    """PSNR of denoised halves, a panel per photo; the line is scikit-learn's."""
    found, panels = rows("Denoising half a photo"), []
    for photo in dict.fromkeys(row["photo"] for row in found):
        items = []
        for row in [row for row in found if row["photo"] == photo]:
            label, learner = _learner(row["learner"])
            words = f"{row['denoised']}, {row['seconds of the fit']} s"
            items.append((label, number(row["denoised"]), (), words, learner))
        [theirs] = [value for _, value, _, _, learner in items if learner == "scikit-learn"]
        panels.append(dots(items, f"{photo}, PSNR in dB", theirs))
    return panels


def default_fits():
    """Objective over that of SPAMS after 20 s, with ranges."""
    items = []
    for row in rows("Default fits of real patches"):
        ratio, *ends = re.findall(r"[\d.]+", row["ratio"])
        words = f"{ratio}, {number(row['seconds, roadict']):g} s"
        items.append((f"{row['K']} atoms, {row['N']} patches", float(ratio), [*map(float, ends)], words, "roadict"))
    return [dots(items, "objective over that of SPAMS after 20 s", 1.0)]


def digits_and_flower():
    """Objective over that of scikit-learn's 1,000 iterations, a panel per kind of data."""
    found, panels = rows("Digits and a flower beside scikit-learn"), []
    for data in dict.fromkeys(row["data"] for row in found):
        items = []
        for row in [row for row in found if row["data"] == data]:
            label, learner = _learner(row["learner"])
            words = f"{row['of 1,000']}, {row['CPU seconds']} s of CPU"
            items.append((label, number(row["of 1,000"]), (), words, learner))
        panels.append(dots(items, f"{data}, objective over that of scikit-learn's 1,000 iterations", 1.0))
    return panels


def coders_and_spams():
    """Microseconds per sample, roadict with sparse codes and SPAMS."""
    items = []
    for row in rows("Coders compared with SPAMS"):
        label = f"{row['coder']}, {row['dtype']}, {row['threads']} thread{'s' * (row['threads'] != '1')}"
        items += [(label, number(row["roadict, sparse"]), "roadict"), (label, number(row["SPAMS"]), "SPAMS")]
    return [bars(items, "microseconds per sample", " µs")]


def compilation():
    """Seconds that compiling adds to the first use, and those of the second."""
    items = []
    for row in rows("Compilation"):
        label = re.sub(r"\(.*\)", "(…)", row["use"].replace("`", ""))
        items += [(label, number(row["wall, s"]), "to compile"), (label, number(row["second use, s"]), "second use")]
    return [bars(items, "seconds", " s")]


CHARTS = {
    "atoms-over-time": (atoms_over_time, "Atoms found over time"),
    "unseen-patches": (unseen_patches, "Objective on unseen patches over time"),
    "growth": (growth, "Growth with N and K (M = 34, float32)"),
    "iteration": (iteration, "One iteration"),
    "recovery": (recovery, "Recovery with defaults"),
    "peers": (peers, "ROAD beside its peers"),
    "coders": (coders, "Coders"),
    "two-stage": (two_stage, "Two-stage methods: speed"),
    "denoising": (denoising, "Denoising, σ = 20"),
    "denoising-half": (denoising_half, "Denoising half a photo"),
    "default-fits": (default_fits, "Default fits of real patches"),
    "digits-and-flower": (digits_and_flower, "Digits and a flower beside scikit-learn"),
    "coders-and-spams": (coders_and_spams, "Coders compared with SPAMS"),
    "compilation": (compilation, "Compilation"),
}
"""Charts by name: how each is drawn, and the section whose tables it shows."""


class ChartDirective(Directive):
    """``{chart} NAME``: its panels, and a caption if there is a text."""

    required_arguments = 1
    has_content = True

    def run(self):
        """Draw it."""
        draw, section = CHARTS[self.arguments[0]]
        self.state.document.settings.env.note_dependency(str(RESULTS))
        caption = f"<figcaption>{escape(' '.join(self.content))}</figcaption>" if self.content else ""
        panels = "".join(f"<div>{panel}</div>" for panel in draw())
        inside = f'<div class="panels">{panels}</div>{caption}'
        markup = f'<figure class="site-chart" aria-label="{escape(section)}">{inside}</figure>'
        return [nodes.raw("", markup, format="html")]


def measured():
    """RESULTS.md for the page "Performance": a chart first, and its table folded, where there is one."""
    by_section = {section: name for name, (_, section) in CHARTS.items()}
    parts = []
    for title, part in sections().items():
        if title in by_section:
            part = re.sub(
                r"((?:^\|.*\n)+)", r"::::{dropdown} The numbers\n\n\1\n::::\n", part, count=1, flags=re.MULTILINE
            )
            part = part.replace("::::{dropdown}", f"```{{chart}} {by_section[title]}\n```\n\n::::{{dropdown}}", 1)
        parts.append(f"## {part}")
    return "".join(parts)


def setup(app):
    app.add_directive("chart", ChartDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
