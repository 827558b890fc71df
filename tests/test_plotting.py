"""Figures: their content is checked on the artists, their formats on the files."""

import itertools
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.transforms import Bbox

from roadict.plotting import atoms_figure, compare_atoms_figure, history_figure, save_figure


def random_atoms(n_atoms, n_features, seed=0):
    atoms = np.random.default_rng(seed).standard_normal((n_atoms, n_features))
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


def texts(figure):
    found = [text.get_text() for text in figure.texts]
    for axes in figure.axes:
        found += [text.get_text() for text in axes.texts]
        found += [axes.get_title(), axes.get_xlabel()]
    return found


def pictures(figure):
    return [image for axes in figure.axes for image in axes.images]


def tiles(figure):
    """Square pictures of the mosaic, row by row: their pixels and their left, top, right and bottom in the axes."""
    image = pictures(figure)[0]
    assert image.get_clim() == (-1, 1)
    sheet = np.ma.filled(image.get_array(), np.nan)
    left, right, bottom, top = image.get_extent()
    inside = [np.diff(np.isfinite(sheet).any(axis=axis).astype(int), prepend=0, append=0) for axis in (0, 1)]
    across, down = (np.flatnonzero(edges).reshape(-1, 2) for edges in inside)
    scale = np.array([(right - left) / sheet.shape[1], (bottom - top) / sheet.shape[0]] * 2)
    return [
        (sheet[y0:y1, x0:x1], np.array([x0, y0, x1, y1]) * scale)
        for y0, y1 in down
        for x0, x1 in across
        if np.isfinite(sheet[y0:y1, x0:x1]).all()
    ]


def assert_shows(tile, atom):
    """Every pixel of an atom is a block of equal pixels, on a scale symmetric about zero."""
    picture = atom.reshape(math.isqrt(atom.size), -1) / (np.abs(atom).max() or 1)
    zoom = len(tile) // len(picture)
    np.testing.assert_allclose(tile, np.kron(picture, np.ones((zoom, zoom))), atol=1e-15)


def curves(axes):
    """Lines with as many points as an atom, so not the one at zero."""
    return [line.get_ydata() for line in axes.lines if len(line.get_ydata()) > 2]


def drawn(figure):
    """Draw a figure; return what gives the box of an artist, in pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    return lambda artist: artist.get_window_extent(renderer)


def assert_apart(boxes):
    for one, other in itertools.combinations(boxes, 2):
        overlap_x = min(one.x1, other.x1) - max(one.x0, other.x0)
        overlap_y = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert min(overlap_x, overlap_y) < 1.5  # pixels


def assert_inside(figure):
    """No heading, label or title leaves the figure, and no two axes overlap."""
    box_of, page = drawn(figure), figure.bbox
    labels = [text for axes in figure.axes for text in (axes.title, axes.xaxis.label, *axes.texts)]
    for text in [*figure.texts, *labels]:
        if text.get_text():
            box = box_of(text)
            assert page.x0 <= box.x0 < box.x1 <= page.x1, text
            assert page.y0 <= box.y0 < box.y1 <= page.y1, text
    assert_apart([axes.get_tightbbox() for axes in figure.axes])


@pytest.mark.parametrize("n_atoms", [1, 3, 32, 100])
def test_square_atoms_become_pictures_with_colours_symmetric_about_zero(n_atoms):
    atoms = random_atoms(n_atoms, 16)
    atoms[0] = 0
    figure = atoms_figure(atoms)
    for (tile, _), atom in zip(tiles(figure), atoms, strict=True):
        assert_shows(tile, atom)
    assert_inside(figure)
    assert ("1 atom of 16 features" if n_atoms == 1 else f"{n_atoms} atoms of 16 features") in texts(figure)


def test_pictures_are_square_and_outlined_and_labels_apart_from_them():
    figure = atoms_figure(random_atoms(30, 9), usage=np.linspace(1, 0, 30))
    box_of, axes = drawn(figure), figure.axes[0]
    places = np.array([place for _, place in tiles(figure)])
    outlines = [np.array(line.get_data()) for line in axes.lines]
    np.testing.assert_allclose([[*line.min(axis=1), *line.max(axis=1)] for line in outlines], places, atol=1e-12)
    corners = [axes.transData.transform(place.reshape(2, 2)) for place in places]
    boxes = [Bbox([[left, bottom], [right, top]]) for (left, top), (right, bottom) in corners]
    assert len(boxes) == len(axes.texts) == 30
    assert_apart([*boxes, *map(box_of, axes.texts)])
    for box in boxes:
        assert box.width == pytest.approx(box.height, abs=1)
        assert box.width > 10
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1


def test_the_number_of_omitted_pictures_is_shown():
    figure = atoms_figure(random_atoms(300, 4))
    assert len(tiles(figure)) == 256
    assert any("first 256 shown, 44 omitted" in text for text in texts(figure))
    assert_inside(figure)


def test_usage_orders_and_labels_atoms():
    atoms = random_atoms(4, 9)
    figure = atoms_figure(atoms, title="costs $5 and $6", usage=[0.1, 0.0, 0.5, 0.123])
    assert_shows(tiles(figure)[0][0], atoms[2])
    found = texts(figure)
    assert "costs $5 and $6" in found
    assert [text for text in found if "%" in text or text == "unused"] == ["50 %", "12.3 %", "10 %", "unused"]
    assert any("most used first, 1 unused" in text for text in found)
    assert_inside(figure)


def test_stability_orders_and_labels_atoms_and_frames_unstable_pictures():
    atoms = random_atoms(5, 9)
    figure = atoms_figure(atoms, usage=np.ones(5), stability=[0.3, 0.99, 0.949, 0.95, 1])
    for (tile, _), atom in zip(tiles(figure), atoms[[4, 1, 3, 2, 0]], strict=True):
        assert_shows(tile, atom)
    axes, found = figure.axes[0], texts(figure)
    assert [text.get_text() for text in axes.texts] == ["1.000", "0.990", "0.950", "0.949", "0.300"]
    colours = [text.get_color() for text in axes.texts]
    assert len(set(colours[:3])) == len(set(colours[3:])) == 1
    assert colours[0] != colours[3]
    outlines = {np.array(line.get_data()).min(axis=1).tobytes(): line.get_color() for line in axes.lines}
    framed = [place[:2] for _, place in tiles(figure)][3:]
    red = [np.frombuffer(corner) for corner, colour in outlines.items() if colour == colours[3]]
    np.testing.assert_allclose(red, framed, atol=1e-12)
    assert any("most stable first, 2 below 0.95 (red): not to be trusted" in text for text in found)
    assert_inside(figure)


def test_stability_frames_curves_and_rows_of_a_heat_map():
    figure = atoms_figure(random_atoms(4, 15), stability=[0.2, 0.99, 0.5, 1])
    assert [axes.get_title() for axes in figure.axes] == ["4   1.000", "2   0.990", "3   0.500", "1   0.200"]
    edges = [axes.spines["left"].get_edgecolor() for axes in figure.axes]
    assert edges[0] == edges[1] != edges[2] == edges[3]
    assert_inside(figure)
    figure = atoms_figure(atoms := random_atoms(70, 15), stability=np.r_[np.zeros(20), np.ones(50)])
    axes = figure.axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), np.roll(atoms, -20, axis=0))
    (frame,) = axes.patches
    assert (frame.get_y(), frame.get_height()) == (50.5, 20)
    assert axes.images[0].get_extent() == [0.5, 15.5, 70.5, 0.5]  # the first atom is number 1
    assert_inside(figure)


@pytest.mark.parametrize("n_atoms", [1, 5, 64])
def test_other_atoms_become_curves_on_common_limits(n_atoms):
    atoms = random_atoms(n_atoms, 15)
    figure = atoms_figure(atoms, usage=np.linspace(1, 0, n_atoms))
    assert len(figure.axes) == n_atoms
    for axes, atom in zip(figure.axes, atoms, strict=True):
        np.testing.assert_array_equal(curves(axes), [atom])
        assert axes.get_ylim() == figure.axes[0].get_ylim()
        assert axes.get_ylim()[1] > np.abs(atoms).max()
    assert_inside(figure)


def test_many_other_atoms_become_a_heat_map():
    atoms = random_atoms(65, 15)
    figure = atoms_figure(atoms)
    image = pictures(figure)[0]
    np.testing.assert_array_equal(image.get_array(), atoms)
    assert image.get_clim() == (-np.abs(atoms).max(), np.abs(atoms).max())
    assert_inside(figure)


def test_pairs_are_matched_and_aligned():
    truth = np.linalg.qr(random_atoms(9, 9))[0]
    order, signs = [3, 1, 0, 2, 8, 7, 6, 5, 4], np.array([1, -1, 1, -1, 1, -1, 1, -1, 1.0])
    figure = compare_atoms_figure(truth, 5 * truth[order] * signs[:, None])
    shown = [image.get_array() for image in pictures(figure)]
    assert len(shown) == 18
    for pair in range(9):
        np.testing.assert_allclose(shown[2 * pair], truth[pair].reshape(3, 3), atol=1e-12)
        np.testing.assert_allclose(shown[2 * pair + 1], shown[2 * pair], atol=1e-12)
        upper, lower = figure.axes[2 * pair : 2 * pair + 2]
        assert upper.get_position().y0 >= lower.get_position().y1
        assert upper.get_position().x0 == lower.get_position().x0
    assert texts(figure).count("1.000") == 9
    assert_inside(figure)


def test_pairs_of_curves_show_correlations_and_missing_partners():
    truth = np.eye(5)[:3]
    learned = np.array([[0.6, 0.8, 0, 0, 0], [0, 0, 0, 0, -2.0]])
    figure = compare_atoms_figure(truth, learned)
    found = texts(figure)
    assert "0.800" in found
    assert "0.000" in found
    assert "no partner" in found
    assert any("0 of 3 correlate" in text for text in found)
    np.testing.assert_allclose(curves(figure.axes[3])[0], learned[0])
    assert_inside(figure)


@pytest.mark.parametrize("n_features", [16, 20])
def test_at_most_32_pairs_are_shown(n_features):
    truth = random_atoms(50, n_features)
    figure = compare_atoms_figure(truth, truth)
    assert len(figure.axes) == 64
    assert any("first 32 shown, 18 omitted" in text for text in texts(figure))
    assert_inside(figure)


def make_history(length):
    falling = 0.9 ** np.arange(length)
    return {
        "objective": 100 + falling,
        "primal": falling,
        "dual": falling / 2,
        "error": falling / 3,
        "rho": np.full(length, 10.0),
        "seconds": np.arange(length) / 100,
    }


@pytest.mark.parametrize("length", [1, 2, 300])
def test_history_has_two_panels(length):
    history = make_history(length)
    figure = history_figure(history)
    left, right = figure.axes
    np.testing.assert_array_equal(left.lines[0].get_ydata(), history["objective"])
    np.testing.assert_array_equal(left.lines[0].get_xdata(), np.arange(1, length + 1))
    assert left.get_yscale() == "linear"
    assert right.get_yscale() == "log"
    shown = {line.get_label(): line.get_ydata() for line in right.lines}
    np.testing.assert_array_equal(shown["primal residual"], history["primal"])
    np.testing.assert_array_equal(shown["dual residual"], history["dual"])
    np.testing.assert_array_equal(shown["data error"], history["error"])
    assert "ρ = 10" in figure.get_suptitle()
    assert_inside(figure)


def test_history_handles_zeros_nan_and_changing_penalties(tmp_path):
    history = make_history(5)
    history["error"] = np.zeros(5)
    history["primal"] = np.array([np.nan, 1, 0, np.inf, 0.1])
    history["rho"] = np.array([2, 2, 4, 8, 20.0])
    figure = history_figure(history)
    assert "ρ = 2 → 20" in figure.get_suptitle()
    save_figure(figure, tmp_path / "history.png")


@pytest.mark.parametrize(
    ("suffix", "magic"), [("png", b"\x89PNG"), ("PNG", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")]
)
def test_files_have_the_format_of_their_suffix(tmp_path, suffix, magic):
    path = tmp_path / f"atoms.{suffix}"
    save_figure(atoms_figure(random_atoms(4, 4)), path)
    assert path.read_bytes().startswith(magic)
    assert os.listdir(tmp_path) == [path.name]


def test_a_failing_drawing_leaves_the_old_file(tmp_path):
    path = tmp_path / "atoms.png"
    path.write_bytes(b"old")
    figure = atoms_figure(random_atoms(4, 4))

    def fail(file, **_):
        file.write(b"half")
        raise RuntimeError("no ink")

    figure.savefig = fail
    with pytest.raises(RuntimeError, match="no ink"):
        save_figure(figure, path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["atoms.png"]


@pytest.mark.parametrize("name", ["atoms.jpg", "atoms", "atoms.npz"])
def test_unknown_formats_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"must end in one of \.png, \.pdf, \.svg"):
        save_figure(atoms_figure(random_atoms(4, 4)), tmp_path / name)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: atoms_figure(np.ones(4)), r"components has shape \(4,\)"),
        (lambda: atoms_figure(np.ones((0, 4))), r"components has shape \(0, 4\)"),
        (lambda: atoms_figure([[np.nan, 1]]), "components contains NaN"),
        (lambda: atoms_figure(np.eye(4), usage=[1, 2]), r"usage has shape \(2,\); pass 4"),
        (lambda: atoms_figure(np.eye(4), stability=[1, 2]), r"stability has shape \(2,\); pass 4"),
        (lambda: compare_atoms_figure(np.eye(4), np.eye(3)), "features"),
        (lambda: history_figure({"objective": [1.0]}), "history lacks primal, dual, error"),
        (lambda: history_figure(make_history(0)), "at least 1"),
        (lambda: history_figure({**make_history(3), "dual": [1.0]}), r"dual \(1,\)"),
    ],
)
def test_bad_input_is_refused(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_matplotlib_is_imported_late_and_pyplot_never():
    code = (
        "import sys, numpy as np, roadict.plotting as p; assert 'matplotlib' not in sys.modules; "
        "p.atoms_figure(np.eye(4)); assert 'matplotlib.pyplot' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
