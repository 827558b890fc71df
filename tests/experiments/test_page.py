"""The page holds the numbers of the rows, and loads nothing from elsewhere."""

import copy
import html
import html.parser
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from roadict.drawing.charts import Mark
from roadict.drawing.curves import line_plot
from roadict.drawing.raster import atom_sheet, png
from roadict.experiments.figures import Strip, curves, dot_plot
from roadict.experiments.page import make_report
from roadict.experiments.registry import EXPERIMENTS
from roadict.experiments.rows import RowFile
from roadict.experiments.runner import PICTURES, make_row
from roadict.experiments.trial import Finished

SECONDS = {"wall": 2.0, "cpu": 1.0}


def result_of(trial, rng):
    if trial.method.learner in ("picture", "bicubic"):
        return {"psnr": float(20 + rng.random())}
    value = float(rng.random() / 10)
    result = {"error": value, "error_greedy": value + 0.01}
    return result | ({"trace": [[1, 0.5], [100, value]]} if trial.problem.trace else {})


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder of synthetic rows with pictures."""
    folder = tmp_path_factory.mktemp("results")
    (folder / PICTURES).mkdir()
    rng = np.random.default_rng(0)
    rows = []
    for experiment in EXPERIMENTS.values():
        for trial in experiment.trials(2, "auto"):
            row = make_row(Finished(trial, result_of(trial, rng), SECONDS))
            rows.append(row)
            if experiment.pictures:
                (folder / PICTURES / f"{row['key']}.png").write_bytes(png(rng.random((120, 150))))
                (folder / PICTURES / f"{row['key']}-atoms.png").write_bytes(png(atom_sheet(rng.random((64, 36)))))
                if trial.method.learner == "bicubic":
                    (folder / PICTURES / f"{row['key']}-original.png").write_bytes(png(rng.random((120, 150))))
    return folder, rows


@pytest.fixture(scope="module")
def page(results):
    folder, rows = results
    return make_report(rows, [folder]).page


class Cells(html.parser.HTMLParser):
    """Full values of table cells by section, in order; tooltips; addresses."""

    def __init__(self):
        super().__init__()
        self.section, self.values, self.addresses, self.tips = "", {}, [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "section":
            self.section = attrs["id"]
        if "data-value" in attrs:
            self.values.setdefault(self.section, []).append(float(attrs["data-value"]))
        self.tips += [attrs["data-tip"]] if "data-tip" in attrs else []
        self.addresses += [attrs[name] for name in ("src", "href") if name in attrs]


def parsed(page):
    cells = Cells()
    cells.feed(page)
    return cells


def test_tables_hold_the_means_of_the_rows(results, page):
    _, rows = results
    found = parsed(page).values
    assert set(found) == set(EXPERIMENTS)
    for name, experiment in EXPERIMENTS.items():
        own = [row for row in rows if row["settings"]["experiment"] == name]
        measures = ["psnr"] if experiment.pictures else ["error", "error_greedy"]
        groups = {}
        for row in own:
            settings = row["settings"]
            cell = settings["panel"], settings["method"]["name"], settings["problem"].get("n_samples")
            for measure in measures:
                groups.setdefault((*cell, measure), []).append(row["result"][measure])
            if not experiment.of_paper:  # the share of trials with an error below 0.01
                groups.setdefault((*cell, "found"), []).append(row["result"]["error"] < 0.01)
        expected = sorted(np.mean(values) for values in groups.values())
        np.testing.assert_allclose(sorted(found[name]), expected, rtol=1e-12)


def test_it_shows_claims_verdicts_commands_versions_and_machine(results, page):
    folder, rows = results
    for experiment in EXPERIMENTS.values():
        assert f"<code>roadict reproduce {experiment.name} --trials 2</code>" in page
        assert experiment.paper in page
    assert str(folder) not in page  # others read the page
    text = html.unescape(page)
    for verdict in make_report(rows, [folder]).verdicts:
        assert text.count(verdict.reason) >= 2  # in the overview and in the section
        assert verdict.claim[1:] in text  # ours begin with a capital
        assert all(f"<td>{cell}</td>" in text for line in verdict.table[1:] for cell in line[1:])
    assert f"numpy {np.__version__}" in page
    assert rows[0]["machine"] in text
    assert f"commit {rows[0]['commit']}; " in text


def test_the_page_loads_nothing_from_elsewhere(page):
    assert all(address.startswith(("data:", "#")) for address in parsed(page).addresses)
    assert not re.search(r"https?://|@import|url\(", page)
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page


N_TABLE_ENTRIES = sum(len(EXPERIMENTS[name].panels) * len(EXPERIMENTS[name].methods) for name in ("digits", "zebra"))


def test_pictures_and_atoms_are_in_the_page(page):
    assert page.count('class="slider"') == 5  # two approaches to the digit, ours and literally, one to the zebra
    assert page.count('alt="atoms of ') == N_TABLE_ENTRIES  # the made-up bicubic has some, too
    assert page.count('alt="original"') == 5


def tips_of(page):
    """Tooltips of the figures for screens; those for phones are the same."""
    tips = parsed(re.sub(r"<svg [^>]*plot narrow.*?</svg>", "", page)).tips
    assert sorted(parsed(page).tips) == sorted(2 * tips)
    return [json.loads(tip) for tip in tips]


def test_tooltips_hold_values(page):
    tips = tips_of(page)
    strips = [tip for tip in tips if tip["lines"][0]["label"] == "mean"]
    assert len(strips) == N_TABLE_ENTRIES
    panels = [(e, panel.problems) for e in EXPERIMENTS.values() if not e.pictures for panel in e.panels]
    lines = [problems for e, problems in panels if e.of_paper or len(problems) > 1]
    expected = [f"{problem.n_samples:,} samples" for problems in lines for problem in problems if not problem.trace]
    expected += ["1 iterations", "100 iterations"]  # of the made-up trace
    shares = [tip for tip in tips if tip["lines"][0]["label"] == "found"]
    assert sorted(tip["at"] for tip in tips if tip not in strips + shares) == sorted(expected)
    methods = [method.label for method in EXPERIMENTS["ablation"].methods]
    assert sorted(tip["at"] for tip in shares) == sorted(3 * methods)  # three panels with one number of samples
    tip = next(tip for tip in tips if tip["at"] == "100 samples")
    assert tip["note"] == "mean and range of 2 trials"
    assert "ROAD, ρ = 10" in {line["label"] for line in tip["lines"]}
    means = [float(line["mean"]) for line in tip["lines"]]
    assert means == sorted(means, reverse=True)  # as drawn, from top to bottom


def test_a_table_is_drawn_best_first_with_the_papers_values(results, page):
    _, rows = results
    tips = tips_of(page)
    strips = [tip for tip in tips if tip["lines"][0]["label"] == "mean"][-len(EXPERIMENTS["zebra"].methods) :]
    means = [float(tip["lines"][0]["mean"].removesuffix(" dB")) for tip in strips]
    assert means == sorted(means, reverse=True)
    own = [row for row in rows if row["settings"]["experiment"] == "zebra"]
    ksvd = [row["result"]["psnr"] for row in own if row["settings"]["method"]["name"] == "ksvd-lasso"]
    (tip,) = (tip for tip in strips if tip["at"] == "K-SVD, Lasso")
    assert tip["note"] == "2 trials"
    values = {line["label"]: line["mean"] for line in tip["lines"]}
    assert values["mean"] == f"{np.mean(ksvd):.2f} dB"
    assert values["all"] == f"{min(ksvd):.2f} – {max(ksvd):.2f}"
    assert values["in the paper"] == "27.87 dB"


def test_dots_of_a_table_are_at_the_means():
    """Five trials, of which four are equal: their mean is above both quartiles."""
    wide, narrow = ElementTree.fromstring(dot_plot([Strip("a", "A", "", [20.0] * 4 + [30.0], paper=25.0)]))
    for figure in (wide, narrow):
        trials = [float(line.get("x1")) for line in figure.iter("line") if line.get("class") == "trial"]
        low, high = min(trials), max(trials)
        (dot,) = (float(circle.get("cx")) for circle in figure.iter("circle"))
        (diamond,) = (path.get("d") for path in figure.iter("path") if path.get("class") == "paper")
        assert dot == pytest.approx(low + 0.2 * (high - low), abs=0.02)
        assert float(diamond.removeprefix("M").split()[0]) == pytest.approx((low + high) / 2, abs=0.02)


def test_unequal_numbers_of_trials_are_shown(results, tmp_path):
    _, rows = results
    road = [row for row in rows if row["settings"]["method"]["name"].startswith("road")]
    first = [row for row in rows if row not in road and row["settings"]["seed"] == 70_000]
    noisy = copy.deepcopy([row for row in [*road, *first] if row["settings"]["experiment"] == "noisy"])
    for row in noisy:
        settings = row["settings"]
        row["settings"] = settings | {"engine": "cuda"} if settings["engine"] else settings
    page = make_report(noisy, [tmp_path]).page
    assert "2 trials of ROAD ρ = 10, ROAD our defaults; 1 of the others" in page
    assert "roadict reproduce noisy --methods road --trials 2 --engine cuda<" in page
    assert "roadict reproduce noisy --methods others --trials 1<" in page
    tip = json.loads(parsed(page).tips[0])
    assert tip["note"] == "mean and range of 1 to 2 trials"
    assert {line["label"]: line["trials"] for line in tip["lines"]}["ROAD, ρ = 10"] == "2×"


SCORES = re.compile(r'flex-grow: (\d+)"><b>\1</b> ([a-z ]+)<')


def repeated(rows, number):
    """The same results for other seeds."""
    return [
        row | {"key": f"{row['key']}-{i}", "settings": row["settings"] | {"seed": row["settings"]["seed"] + 1000 * i}}
        for i in range(number)
        for row in rows
    ]


def test_claims_are_counted_unless_they_are_tentative(results, page, tmp_path):
    assert SCORES.findall(page) == []
    of_paper = [verdict for verdict in make_report(results[1], [tmp_path]).verdicts if not verdict.ours]
    assert f"<b>{len(of_paper)} tentative</b> from fewer than 5 trials: more" in page
    rows = repeated(results[1], 3)
    report = make_report(rows, [tmp_path])
    outcomes = [verdict.outcome for verdict in report.verdicts if not verdict.ours]
    shown = SCORES.findall(report.page)
    assert sorted(shown) == sorted((str(outcomes.count(name)), name) for name in set(outcomes))


def test_a_method_has_one_colour_in_all_figures(page):
    seen = {}
    for tip in tips_of(page):
        for line in tip["lines"]:
            if "colour" in line:
                seen.setdefault(line["label"], set()).add(line["colour"])
    assert set(seen) == {method.label for e in EXPERIMENTS.values() if not e.pictures for method in e.methods}
    assert all(len(colours) == 1 for colours in seen.values())


def test_zero_error_is_drawn_on_the_log_scale():
    drawn = line_plot(curves({"a": {100: [0.0, 0.0], 200: [0.0]}}, {"a": "A & B"}), "samples")
    assert "nan" not in drawn
    assert "A &amp; B" in drawn
    assert re.search(r"&quot;mean&quot;: &quot;0&quot;", drawn)


def ablation_page(results, folder, found):
    """The page of the ablation, where methods find the dictionary in so many of the trials of eight seeds."""
    _, rows = results
    own = repeated([row for row in rows if row["settings"]["experiment"] == "ablation"], 4)
    for row in own:
        method, seed = row["settings"]["method"]["name"], row["settings"]["seed"]
        error = 0.0 if 2 * (seed // 1000 - 70) + seed % 2 < found.get(method, 0) else 0.05
        row["result"] = row["result"] | {"error": error}
    return make_report(own, [folder]).page


def test_the_ablation_is_drawn_as_success(results, tmp_path):
    """A scale from 0 to 1, with Wilson's interval: of 6 of 8 it is from 0.4 to 0.93, of none up to a third."""
    page = ablation_page(results, tmp_path, {"road-defaults": 8, "ksvd": 6})
    section = page.partition('<section id="ablation">')[2].partition("</section>")[0]
    wide = re.findall(r"<svg [^>]*plot wide.*?</svg>", section)
    assert len(wide) == 4
    assert not any("tspan" in figure for figure in wide)  # no powers of ten
    assert "share of the trials" in wide[0]
    ticks = [text.text for text in ElementTree.fromstring(wide[0]).iter("text") if text.get("text-anchor") == "end"]
    assert [float(tick) for tick in ticks] == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    tips = tips_of(page)
    (tip,) = (tip for tip in tips if tip["at"] == "150 samples")
    lines = {line["label"]: (line["mean"], line["range"]) for line in tip["lines"]}
    assert tip["note"] == "share and 95 % interval of 8 trials"
    assert lines["ROAD, our defaults"] == ("100 %", "67 % – 100 %")
    assert lines["K-SVD"] == ("75 %", "40 % – 93 %")
    assert lines["BLOTLESS"] == ("0 %", "0 % – 33 %")
    values = [{v["label"]: v["mean"] for v in tip["lines"]} for tip in tips if tip["at"] == "K-SVD"]
    assert values == [{"found": "75 %", "interval": "40 % – 93 %"}] * 3
    text = html.unescape(section)
    assert "Success: the share of the trials that find the dictionary, with an error below 0.01" in text
    assert '<td data-value="0.75">75 % of 8</td>' in text
    assert "trials with an error below 0.01" in text


def test_shares_are_drawn_where_their_values_are(results, tmp_path):
    page = ablation_page(results, tmp_path, {"road-defaults": 8, "ksvd": 6, "blotless": 4})
    section = page.partition('<section id="ablation">')[2].partition("</section>")[0]
    *_, last = re.findall(r"<svg [^>]*plot wide.*?</svg>", section)
    root = ElementTree.fromstring(last)
    at = [float(dot.get("cx")) for dot in root.iter("circle")]
    labels = [text.text for text in root.iter("text") if (text.get("class") or "").startswith("name")]
    found = dict(zip(labels, at, strict=True))
    zero, one = found["annealed Lasso"], found["ROAD, our defaults"]
    assert found["K-SVD"] == pytest.approx(zero + 0.75 * (one - zero), abs=0.02)
    assert found["BLOTLESS"] == pytest.approx(zero + 0.5 * (one - zero), abs=0.02)
    line = next(group for group in root.iter("g") if "K-SVD" in "".join(group.itertext())).find("path").get("d")
    ends = [float(x) for x in re.findall(r"[ML]([\d.]+) ", line)]
    np.testing.assert_allclose(ends, [zero + share * (one - zero) for share in (0.4, 0.9333)], atol=2)


def test_the_scales_include_the_marks():
    lines = curves({"a": {100: [0.02], 200: [0.01]}}, {"a": "A"})
    (root, _) = ElementTree.fromstring(line_plot(lines, "samples", marks=[Mark(300, 1e-11, "<finished>")]))
    (ring, label) = next(group for group in root.iter("g") if group.get("class").startswith("mark"))
    dots = root.findall(".//circle[@class='dot']")
    assert label.text == "<finished>"
    assert float(ring.get("cx")) > max(float(dot.get("cx")) for dot in dots)
    # Nine decades below a dot, which is one below the top: the scale is even in decades.
    heights = [float(circle.get("cy")) for circle in (*dots, ring)]
    assert heights[2] - heights[1] == pytest.approx(9 * (heights[1] - heights[0]) / np.log10(2), abs=0.1)


def test_rows_of_other_settings_and_missing_pictures_are_omitted(results, tmp_path):
    _, rows = results
    other = {**rows[0], "key": "x", "settings": {**rows[0]["settings"], "sources": "0"}}
    engine = {**rows[0], "key": "y", "settings": {**rows[0]["settings"], "engine": "reference"}}
    page = make_report([*rows, other, engine], [tmp_path]).page  # a folder without pictures
    assert re.search("2 rows of other settings .* are in the same folder", page)
    assert re.search("1 row of other settings .* is in the same folder", make_report([*rows, other], [tmp_path]).page)
    assert "data:image/png" not in page
    assert parsed(page).values == parsed(make_report(rows, [tmp_path]).page).values
    assert "All rows come from other code" in make_report([other], [tmp_path]).page
    assert "come from other code" not in page
    changed = {**other, "settings": {**other["settings"], "panel": "another"}}
    with pytest.raises(ValueError, match="no rows of the current settings"):
        make_report([changed], [tmp_path])


def test_a_part_of_one_experiment_is_enough(results, tmp_path):
    _, rows = results
    page = make_report([row for row in rows if row["settings"]["experiment"] == "noisy"][:1], [tmp_path]).page
    assert "too few rows" in page


def test_an_incomplete_run_is_marked_at_the_top_at_its_experiment_and_in_its_figures(results, page, tmp_path):
    assert "not complete" not in page
    rows = [row for row in results[1] if row["settings"]["experiment"] in ("solvers", "noisy")]
    first = [row for row in rows if row["settings"]["seed"] == 70_000]
    stopped = first[:34] + first[40:]  # 34 of 40 rows of the first experiment
    text = html.unescape(make_report(stopped, [tmp_path]).page)
    top, _, rest = text.partition("<main>")
    assert 'id="incomplete"><b>106 of 112 rows:</b>' in top
    assert "(34 of 40)" in top
    solvers, _, noisy = rest.partition('<section id="noisy">')
    assert "<b>34 of 40 rows:</b> this run is not complete. Lines that end early are marked by ×." in solvers
    assert "not complete" not in noisy
    ended = re.findall(r">× ([^<]+)</text>", solvers)
    assert sorted(ended) == sorted(CUT)
    assert solvers.count('class="line cross"') == 2 * 6
    assert "×" not in noisy


@pytest.mark.parametrize(
    ("road", "words", "group", "absent"),
    [
        (True, "Methods other than ROAD have", "others", "BLOTLESS, K-SVD"),
        (False, "ROAD has", "road", "ROAD, ρ = 10"),
    ],
)
def test_methods_without_any_row_are_named(results, tmp_path, road, words, group, absent):
    own = [row for row in results[1] if row["settings"]["experiment"] == "noisy"]
    some = [row for row in own if row["settings"]["method"]["name"].startswith("road") == road]
    page = html.unescape(make_report(some, [tmp_path]).page)
    top, _, rest = page.partition("<main>")
    assert f"<b>Not complete:</b> {words} no rows in <a" in top
    assert "<b>No rows of</b> " in rest
    assert absent in rest.partition("<b>No rows of</b> ")[2].partition("</p>")[0]
    assert f"<code>roadict reproduce noisy --methods {group}</code>" in rest


CUT = ["iADMM, three ρ", "iADMM, one ρ", "SimCO", "alternating Lasso", "sequential ℓ1", "consistent sequential"]


def test_rows_of_the_tables_are_in_the_order_of_the_figures(results, page):
    """PSNR: best on top; errors: by the ends of the lines, where their labels are."""
    for name in ("digits", "noisy"):
        section = page.partition(f'<section id="{name}">')[2].partition("</section>")[0]
        for part in re.findall(r"<svg [^>]*plot wide.*?</svg>", section):
            names = [label for _, label in sorted(label_heights(part))]
            tables = re.findall(r"<tbody>(.*?)</tbody>", section.partition('class="panels"')[2], re.DOTALL)
            orders = [re.findall(r"<tr[^>]*><th>([^<]*)</th>", table) for table in tables]
            assert names in orders


def label_heights(svg):
    found = re.findall(r"<text ([^>]*)>([^<]*)</text>", svg)
    return [(float(re.search(r' y="([\d.]+)"', f" {a}")[1]), html.unescape(t)) for a, t in found if 'class="name' in a]


@pytest.mark.parametrize(("number", "bands"), [(3, 0), (4, 2)])
def test_bands_need_four_trials(number, bands):
    lines = curves({"a": {100: [0.1] * number, 200: [0.2] * number}}, {"a": "A"})
    assert line_plot(lines, "samples").count('class="band') == bands  # in both sizes


def test_values_below_the_scale_are_drawn_as_at_most():
    values = {"a": {100: [0.1], 200: [1e-9]}, "b": {100: [0.1], 200: [1e-3]}}
    drawn = line_plot(curves(values, {"a": "A", "b": "B"}), "samples")
    wide, _ = ElementTree.fromstring(drawn)
    assert [t.text for t in wide.iter("text") if (t.text or "").startswith("≤")] == ["≤ 10"]
    assert drawn.count('class="dot most"') == 2
    assert len(wide.findall(".//circle[@class='dot']")) == 3
    above = line_plot(curves({"b": values["b"]}, {"b": "B"}), "samples")
    assert "≤" not in above
    assert "most" not in above


def test_ticks_of_numbers_of_samples_have_room():
    for problems in (panel.problems for panel in EXPERIMENTS["noise-free"].panels):
        numbers = [problem.n_samples for problem in problems]
        lines = curves({"mod": {n: [0.1] for n in numbers}}, {"mod": "consistent sequential"})
        for figure in ElementTree.fromstring(line_plot(lines, "samples")):
            bottom = max(float(t.get("y")) for t in figure.iter("text")) - 18  # above the title of the axis
            ticks = sorted(float(t.get("x")) for t in figure.iter("text") if float(t.get("y")) == bottom)
            assert len(ticks) >= 3
            assert min(np.diff(ticks)) > 30


def test_labels_do_not_touch():
    lines = curves(
        {name: {100: [0.5], 200: [0.1 + 0.001 * i]} for i, name in enumerate("abcdefghi")},
        dict(zip("abcdefghi", "ABCDEFGHI", strict=True)),
    )
    for figure in ElementTree.fromstring(line_plot(lines, "samples")):
        ys = sorted(float(t.get("y")) for t in figure.iter("text") if t.get("class") == "name")
        assert len(ys) == 9
        assert min(np.diff(ys)) >= 13.9
        order = [
            t.text for t in sorted(figure.iter("text"), key=lambda t: float(t.get("y"))) if t.get("class") == "name"
        ]
        assert order == list("IHGFEDCBA")


def test_rows_from_a_file_give_the_same_page(results, page, tmp_path):
    from roadict.experiments.rows import read_folder

    folder, rows = results
    files = {name: RowFile(folder / f"{name}.jsonl") for name in EXPERIMENTS}
    for row in rows:
        files[row["settings"]["experiment"]].append(row)
    again = make_report(read_folder(folder), [folder]).page
    assert parsed(again).values.keys() == parsed(page).values.keys()
    for name, values in parsed(again).values.items():
        np.testing.assert_allclose(values, parsed(page).values[name], rtol=1e-12)
