"""Charts: the SVG is parsed, and pixels are converted to values by its axes."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from roadict.drawing.charts import CSS_FILE, MAX_POINTS, Chart, Scale, element, hover, svg

HOSTILE = """</text><script>alert('"&"')</script>"""


def read(inside):
    return ElementTree.fromstring(svg(400, 300, [inside], "title"))


def coord(tag, name="x"):
    return float(tag.get(name))


def number(text):
    """The value of a tick: 10 with a raised power, or a plain number."""
    power = text.find("tspan")
    if power is not None:
        return 10 ** float(power.text.replace("−", "-"))
    return float(text.text.replace(",", "").removesuffix(" %"))


def ruler(chart, axis, log):
    """A function from pixels to values, fitted to the tick labels of an axis."""
    if axis == "y":
        ticks = read(chart.y_axis()).findall("text")
        pixels = [coord(tick, "y") - 4 for tick in ticks]
    else:
        ticks = [tick for tick in read(chart.x_axis("title")).findall("text") if tick.text != "title"]
        pixels = [coord(tick) for tick in ticks]
    values = np.array([number(tick) for tick in ticks])
    assert len(values) > 1
    slope, offset = np.polyfit(pixels, np.log10(values) if log else values, 1)
    return lambda pixel: 10 ** (slope * pixel + offset) if log else slope * pixel + offset


CHARTS = [
    Chart(Scale(1, 1000, 60, 380), Scale(-3, 12, 250, 10)),
    Chart(Scale(1, 1000, 60, 380, log=True), Scale(1e-11, 1, 250, 10, log=True)),
    Chart(Scale(1, 260, 72, 368), Scale(0.02, 0.09, 250, 10, log=True), inset=12),
]


@pytest.mark.parametrize("chart", CHARTS)
def test_pixels_are_read_back_as_values_by_the_axes(chart):
    rng = np.random.default_rng(0)
    x = np.sort(np.geomspace(chart.x.low, chart.x.high, 9))
    low, high = chart.y.low, chart.y.high
    y = np.exp(rng.uniform(np.log(low), np.log(high), 9)) if chart.y.log else rng.uniform(low, high, 9)
    x_of, y_of = ruler(chart, "x", chart.x.log), ruler(chart, "y", chart.y.log)
    path = re.findall(r"[ML](\S+) ([^ML]+)", read(chart.line(x, y)).find("path").get("d"))
    dots = [(coord(dot, "cx"), coord(dot, "cy")) for dot in read(chart.dots(x, y)).findall("circle")]
    band = [point.split(",") for point in read(chart.band(x, y, y)).find("polygon").get("points").split()]
    ring = [read(chart.mark(*point, "end")).find("g/circle") for point in zip(x, y, strict=True)]
    rings = [(coord(circle, "cx"), coord(circle, "cy")) for circle in ring]
    for drawn in (path, dots, band[:9], band[:8:-1], rings):
        across, down = np.array(drawn, float).T
        tolerance = 0.01 if chart.x.log else 0.01 * 1000 / 320  # pixels have two decimals
        np.testing.assert_allclose(x_of(across), x, rtol=2e-3, atol=tolerance)
        np.testing.assert_allclose(y_of(down), y, rtol=2e-3, atol=0 if chart.y.log else 0.002)


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (Scale(0, 1, 0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (Scale(812.2, 813.1, 0, 1), [812.2, 812.4, 812.6, 812.8, 813]),
        (Scale(26, 30, 0, 1), [26, 27, 28, 29, 30]),
        (Scale(-7, 1300, 0, 1), [0, 200, 400, 600, 800, 1000, 1200]),
        (Scale(1e-6, 1, 0, 1, log=True), [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1]),
        (Scale(1e-11, 1, 0, 1, log=True), [1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1]),
        (Scale(0.021, 0.088, 0, 1, log=True), [0.03, 0.04, 0.05, 0.06, 0.07, 0.08]),
        (Scale(3, 3, 0, 1), [3]),
    ],
)
def test_ticks_are_round_and_few(scale, expected):
    assert scale.ticks(7) == pytest.approx(expected, rel=1e-12)
    assert len(scale.ticks(4)) <= 5


@pytest.mark.parametrize(
    ("scale", "value", "label"),
    [
        (Scale(0, 1, 0, 1), 0.1 + 0.2, "0.3"),
        (Scale(0, 1, 0, 1), 1200.0, "1,200"),
        (Scale(0, 1, 0, 1), 1.25e6, "1.25e6"),
        (Scale(1, 9, 0, 1, log=True), 1.0, "1"),
        (Scale(1, 9, 0, 1, log=True), 1e4, "10,000"),
        (Scale(1, 9, 0, 1, log=True), 0.02, "0.02"),
    ],
)
def test_tick_labels_are_readable(scale, value, label):
    assert scale.label(value) == label


def test_labels_and_titles_are_escaped():
    chart = CHARTS[0]
    drawn = svg(
        400,
        300,
        [
            chart.x_axis(HOSTILE),
            chart.y_axis(HOSTILE),
            chart.mark(5, 5, HOSTILE, "c0"),
            chart.legend({"c0": HOSTILE}),
            hover("<g/>", {"at": HOSTILE}),
            element("g", data_name=HOSTILE),
        ],
        HOSTILE,
    )
    root = ElementTree.fromstring(drawn)
    assert root.get("aria-label") == HOSTILE
    assert not list(root.iter("script"))
    assert [text.text for text in root.iter("text")].count(HOSTILE) == 4
    assert root.find("g[@data-name]").get("data-name") == HOSTILE
    assert json.loads(root.find("g[@data-tip]").get("data-tip")) == {"at": HOSTILE}


def test_a_point_without_finite_pixels_leaves_a_gap():
    path = read(CHARTS[1].line([1, 2, 3, 4, 5, 6], [1, 0.1, 0, 0.1, np.nan, np.inf])).find("path").get("d")
    assert re.findall("[ML]", path) == ["M", "L", "M"]
    long = read(CHARTS[0].line(range(5000), range(5000))).find("path").get("d")
    assert long.count("L") == MAX_POINTS - 1


def test_a_mark_has_its_label_towards_the_middle_and_stays_on_the_scales():
    chart = CHARTS[1]
    for x, y, side in ((1000, 1e-11, -1), (1, 1, 1), (5000, 0.0, -1)):
        group = read(chart.mark(x, y, "finished fit", "c2")).find("g")
        ring, label = group.find("circle"), group.find("text")
        assert group.get("class") == "mark c2"
        assert 60 <= coord(ring, "cx") <= 380
        assert 10 <= coord(ring, "cy") <= 250
        assert (coord(label) - coord(ring, "cx")) * side > 5
        assert label.get("text-anchor") == {-1: "end", 1: "start"}[side]
        assert label.text == "finished fit"


@pytest.mark.parametrize(
    ("lines", "level"),
    [
        ([], 0),
        ([(5, 5)], -14),  # it would cross the label
        ([(5, 5), (5.8, 5.8)], 14),
        ([(11, 5.5)], 0),  # it comes from far above
    ],
)
def test_the_label_of_a_mark_avoids_lines(lines, level):
    chart = CHARTS[0]
    group = read(chart.mark(1000, 5, "finished fit", avoid=[([1, 800, 1000], [*ys, ys[1]]) for ys in lines])).find("g")
    assert coord(group.find("text"), "y") - 4 - coord(group.find("circle"), "cy") == level


@pytest.mark.parametrize(("y", "level"), [(11.8, 14), (-2.8, -14)])
def test_the_label_of_a_mark_stays_between_the_axes(y, level):
    group = read(CHARTS[0].mark(1000, y, "finished fit", avoid=[([1, 1000], [y, y])])).find("g")
    assert coord(group.find("text"), "y") - 4 - coord(group.find("circle"), "cy") == level


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ([], "left above"),
        ([([1, 1000], [9, 9])], "left above"),  # far from it
        ([([1, 400], [5.5, 5.5])], "left below"),
        ([([1, 300, 300.1, 400], [9, 9, 1, 1])], "left above"),  # falls steeply, beside it
        ([([1, 100, 101, 400], [9, 9, 1, 1])], "right above"),  # falls steeply, through both places on the left
        ([([1, 100, 101, 600, 601, 1000], [9, 9, 1, 1, 5.5, 5.5])], "right below"),
        ([([1, 100, 101, 900, 901, 1000], [9, 9, 1, 1, 9, 9])], "middle above"),
    ],
)
def test_the_label_of_a_level_is_where_no_line_crosses_it(line, place):
    chart = CHARTS[0]
    group = read(chart.level(5, "tolerance 0.01", "tolerance", avoid=line)).find("g")
    label, path = group.find("text"), group.find("path").get("d")
    assert path == f"M60 {float(chart.y(5)):g}H380"
    sides = {110: "left", 220: "middle", 330: "right"}
    side = sides[min(sides, key=lambda middle: abs(middle - coord(label)))]
    assert f"{side} {'above' if coord(label, 'y') < chart.y(5) else 'below'}" == place


def test_bars_start_at_zero_and_are_centred():
    chart = Chart(Scale(0.5, 4.5, 50, 250), Scale(0, 50, 280, 80))
    bars = read(chart.bars([50, 25, 12.5, 0], "c1")).findall("g/rect")
    assert [coord(bar, "height") for bar in bars] == [200, 100, 50, 0]
    assert [coord(bar, "y") + coord(bar, "height") for bar in bars] == [280] * 4
    middles = [coord(bar) + coord(bar, "width") / 2 for bar in bars]
    assert middles == pytest.approx([75, 125, 175, 225])


def test_hover_areas_cover_the_plot_and_contain_their_x():
    chart = CHARTS[2]
    xs = [1, 20, 100, 260]
    columns = read(chart.columns(xs, [{"at": x} for x in xs])).findall("g")
    areas = [(coord(c.find("rect")), coord(c.find("rect")) + coord(c.find("rect"), "width")) for c in columns]
    assert (areas[0][0], areas[-1][1]) == (60, 380)
    assert [end for _, end in areas[:-1]] == pytest.approx([start for start, _ in areas[1:]], abs=0.02)
    for x, column, (left, right) in zip(xs, columns, areas, strict=True):
        assert json.loads(column.get("data-tip")) == {"at": x}
        assert left < coord(column.find("line"), "x1") < right


def test_every_class_in_use_has_a_rule():
    chart, css = CHARTS[0], CSS_FILE.read_text("utf-8")
    parts = [chart.y_axis(), chart.line([1, 2], [1, 2], "before"), chart.dots(1, 1), chart.bars([1], "c1")]
    parts += [chart.mark(1, 1, "a"), chart.columns([1, 2], [{}, {}]), chart.legend({"c0": "a"})]
    names = {name for tag in read("".join(parts)).iter() for name in tag.get("class", "").split()}
    assert {"grid", "line", "dot", "bars", "mark", "column", "guide", "plot"} <= names
    assert not [name for name in names if not re.search(rf"\.{name}\b", css)]
