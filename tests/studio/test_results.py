"""What is shown of a result, from the files and the status of its job."""

import json
import math
import re
from base64 import b64decode
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from skimage.data import camera

from roadict import ROAD, ROADCV, load
from roadict.cli import summary
from roadict.drawing.charts import Mark
from roadict.pictures import SuperResolution
from roadict.plotting import found_atoms
from roadict.studio import comparison, drawings, jobs, panels, results, samples, uses, verdict
from roadict.studio.commands import learn_command, picture_command
from roadict.synthetic import planted


@pytest.fixture
def learned(tmp_path):
    """Return a function that fits a model to data and shows it, as the studio does after its job."""

    def show(data, atoms, lines=(), truth=None, **parameters):
        np.save(tmp_path / "data.npy", data)
        model = ROAD(atoms, random_state=0, **parameters)
        if parameters.get("max_iter"):
            with pytest.warns(UserWarning, match="has not converged"):
                model.fit(data)
        else:
            model.fit(data)
        job = jobs.Job(learn_command("data.npy", n_components=atoms), tmp_path, "me")
        model.save(job.result)
        job.state = "done"
        job.status.lines = [*lines, *filter(None, [model.dense_advice])]
        shown = results.show_signals(job, truth)
        return model, results.Shown(*map(unescape, shown))

    return show


def uses_in(view):
    return json.loads(unescape(re.search('<span class="rd-uses" hidden>(.*)</span>', view)[1]))


def test_planted_atoms_that_are_found_are_counted(learned, tmp_path):
    made = planted(120, 8, 10, sparsity=2, random_state=0)
    np.save(tmp_path / "truth.npy", made.dictionary)
    model, shown = learned(made.data, 10, truth=tmp_path / "truth.npy")
    assert "rd-panel rd-done" in shown.panel
    assert "<dt>planted atoms found</dt><dd>10 of 10</dd>" in shown.panel
    assert found_atoms(model.components_[:4], made.dictionary) == 4
    assert "exact finish: " in shown.details  # the ring of the last point
    assert "tolerance 10⁻⁴" in shown.details
    assert not re.search(r"\de[-+]\d", shown.panel + re.sub("<[^>]*>", "", shown.details))


def test_every_atom_has_its_strongest_users(learned):
    made = planted(120, 8, 10, sparsity=2, random_state=0)
    model, shown = learned(made.data, 10)
    described = uses_in(shown.view)
    assert [atom["name"] - 1 for atom in described["atoms"]] == np.argsort(-model.atom_usage_, kind="stable").tolist()
    for atom in described["atoms"]:
        column = model.codes_[:, atom["name"] - 1]
        rows = [row - 1 for row, *_ in atom["users"]]
        assert rows == np.argsort(-np.abs(column), kind="stable")[: uses.USERS].tolist()
        assert f"used by {np.count_nonzero(column)} of 120 signals" in atom["text"]
        values = np.frombuffer(b64decode(atom["values"]), np.int8) / 127
        np.testing.assert_allclose(
            values * np.abs(model.components_[atom["name"] - 1]).max(), model.components_[atom["name"] - 1], atol=0.005
        )
        for row, _, gain in atom["users"]:  # the atom's part in the signal, on the scale of the drawn signal
            part = column[row - 1] * model.components_[atom["name"] - 1]
            np.testing.assert_allclose(gain * values, part / np.abs(made.data[row - 1]).max(), atol=0.02 * abs(gain))


def test_a_run_that_has_not_converged_is_not_green_and_names_fields_of_the_page(learned):
    made = planted(60, 8, 10, sparsity=2, random_state=0)
    warning = "roadict: warning: ROAD has not converged in --max-iter 3 iterations; pass a larger --max-iter or --tol"
    _, shown = learned(made.data, 10, [warning, "roadict: warning: something else"], max_iter=3, n_init=1)
    assert "rd-panel rd-doubtful" in shown.panel
    assert "<strong>Stopped before it converged</strong>" in shown.panel
    assert "max_iter" not in shown.panel
    assert "“Error bound”" in shown.panel
    assert "fewer “Atoms”" in shown.panel
    assert "the command below with --max-iter 30" in shown.panel
    assert "something else" in shown.panel


def test_the_default_number_of_iterations_is_what_more_are_advised_of(learned, tmp_path):
    made = planted(60, 8, 10, sparsity=2, random_state=0)
    model, _ = learned(made.data, 10, max_iter=3, n_init=1)
    assert ROAD().max_iter is None
    model.max_iter = None
    model.save(tmp_path / "again.npz")
    again = load(tmp_path / "again.npz")
    assert (again.max_iter, again.stop_reason_) == (None, "max_iter")
    kind, _, notes = verdict.verdict(jobs.Job(learn_command("data.npy"), tmp_path, "me"), again)
    assert kind == "doubtful"
    assert notes[-1].endswith("or run the command below with --max-iter 20000.")


def test_advice_on_a_number_from_the_data_names_the_fields_of_that_choice(tmp_path):
    data = planted(120, 8, 10, sparsity=2, snr_db=30, random_state=0).data
    model = ROADCV([8], n_splits=1, random_state=0).fit(data)
    job = jobs.Job(learn_command("data.npy"), tmp_path, "me")
    model.atom_usage_ = np.full(8, 0.1)
    assert verdict.verdict(job, model).kind == "done"
    model.stop_reason_ = "max_iter"
    kind, _, (_, advice) = verdict.verdict(job, model)
    assert (kind, advice) == (
        "doubtful",
        "Enter smaller “Numbers to try” or another “Seed”, or run the command below with --max-iter 20000.",
    )
    model.atom_usage_, model.exact_ = np.ones(8), False
    assert "use ROAD with a larger epsilon" in model.dense_advice
    assert "enter smaller “Numbers to try”, or untick “Find" in verdict.verdict(job, model).notes[1]
    model.stop_reason_ = "converged"
    kind, _, notes = verdict.verdict(job, model)
    assert kind == "doubtful"
    assert notes == [
        "Signals use 8.0 of 8 atoms, so they are hardly simpler than before: enter smaller “Numbers to try”, or "
        "untick “Find the number of atoms in the data” and enter a larger “Error bound”."
    ]


def test_atoms_that_are_not_certain_are_not_green(tmp_path):
    data = planted(120, 8, 10, sparsity=2, snr_db=30, random_state=0).data
    model, job = ROAD(10, epsilon=0.1, random_state=0).fit(data), jobs.Job(learn_command("data.npy"), tmp_path, "me")
    model.atom_usage_, model.n_starts_, model.n_starts_agreed_ = np.full(10, 0.1), 3, 2
    assert verdict.verdict(job, model).kind == "done"
    model.n_starts_agreed_ = 1
    kind, title, notes = verdict.verdict(job, model)
    assert (kind, title) == ("doubtful", "Done, but the atoms are not certain")
    assert notes == [
        "No two starts agree. Tick “Mark atoms that are not to be trusted”, or enter fewer “Atoms”, or tick “Find the "
        "number of atoms in the data”."
    ]
    model.codes_ = model.codes_[:9]
    assert verdict.verdict(job, model).notes[0].startswith("9 signals for 10 atoms: such atoms are not to be trusted.")
    model.stop_reason_ = "max_iter"  # an advice of its own does not hide this one
    assert any(note.startswith("9 signals for 10 atoms") for note in verdict.verdict(job, model).notes)
    model.stop_reason_ = "converged"
    job.status.lines = ["no two starts agree: --stability tells which atoms to trust, and -k auto finds their number"]
    assert verdict.messages(job) == []
    model.cv_results_ = {}  # as if their number was found in the data
    for codes in (model.codes_, None):
        model.codes_ = codes
        job.status.lines = [summary._doubts(model), "model: out.npz"]
        assert job.status.lines[0]
        assert verdict.messages(job) == ["model: out.npz"]


def test_a_run_that_was_stopped_says_what_it_has_not_found(tmp_path):
    data = planted(120, 8, 10, sparsity=2, snr_db=30, random_state=0).data
    model = ROAD(10, random_state=0, callback=lambda snapshot: snapshot.iteration == 4).fit(data)
    job = jobs.Job(learn_command("data.npy"), tmp_path, "me")
    model.stop_reason_, job.state = "interrupted", "stopped"
    used = f"{np.count_nonzero(model.codes_) / 120:.1f} of 10"
    assert verdict.verdict(job, model).notes == [
        f"Noise level not found yet; codes not sparse yet, {used} coefficients per sample."
    ]
    job.status.lines = [f"stopped early: noise level not found yet; codes not sparse yet, {used}", "model: out.npz"]
    assert verdict.messages(job) == ["model: out.npz"], "which the note replaces"
    model.epsilon, model.atom_usage_, model.n_starts_, model.n_starts_agreed_ = 0.1, np.full(10, 0.1), 2, 1
    assert verdict.verdict(job, model).notes == [], "sparse, of known noise, and the second start had no time to agree"


@pytest.mark.parametrize(("count", "verb"), [(1, "has"), (4, "have")])
def test_warnings_of_stabilities_are_shown_without_parameters(learned, count, verb):
    made = planted(60, 8, 10, sparsity=2, random_state=0)
    sentence = f"{count} of 4 fits of halves {verb} not converged"
    warning = (
        f"roadict: warning: {sentence} in --max-iter 2000 iterations, and stabilities may be too low; fit the model "
        "with a larger --max-iter or --tol"
    )
    _, shown = learned(made.data, 10, [warning])
    assert f">{sentence}, and stabilities may be too low</p>" in shown.panel


def test_atoms_that_are_not_to_be_trusted_are_marked():
    atoms, codes = np.eye(4)[:3], np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]])
    described = uses.signal_uses(atoms, codes, codes @ atoms, np.array([0.5, 1.0, 0.5]), np.array([1.0, 0.42, 0.96]))
    assert [(atom["name"], atom["doubted"]) for atom in described["atoms"]] == [(2, True), (1, False), (3, False)]
    assert described["atoms"][0]["text"] == "used by 2 of 2 signals (100 %), stability 0.42: not to be trusted"
    assert described["atoms"][1]["text"] == "used by 1 of 2 signals (50 %), stability 1"
    (one,) = uses.signal_uses(atoms[:1], codes[:1, :1], atoms[:1], np.ones(1))["atoms"]
    assert (one["text"], one["doubted"]) == ("used by 1 of 1 signal (100 %)", False)


def test_codes_that_are_not_sparse_get_a_word(learned):
    noise = np.random.default_rng(0).normal(size=(60, 6))
    model, shown = learned(noise, 12, epsilon=0.01, n_init=1)
    assert model.dense_advice
    assert "rd-panel rd-doubtful" in shown.panel
    assert "Done, but the codes are hardly sparse" in shown.panel
    assert f"Signals use {model.atom_usage_.sum():.1f} of 12 atoms" in shown.panel
    assert "n_components" not in shown.panel


def test_places_of_an_atom_are_where_the_picture_has_it():
    atoms = np.zeros((2, 64), np.float32)
    atoms[0].reshape(8, 8)[:, ::2] = 1
    atoms[1].reshape(8, 8)[::2] = 1
    atoms = (atoms - atoms.mean(axis=1, keepdims=True)) / np.linalg.norm(
        atoms - atoms.mean(axis=1, keepdims=True), axis=1, keepdims=True
    )
    picture = np.full((64, 64), 0.5, np.float32)
    picture[8:24, 8:24] += 0.4 * np.tile(np.arange(16) % 2, (16, 1)).astype(np.float32)  # stripes across
    described = uses.place_uses(atoms, picture)
    first, second = described["atoms"]
    assert (first["name"], second["name"]) == (1, 2)
    places, grid = np.frombuffer(b64decode(first["at"]), "<u2"), described["grid"]
    rows, columns = places // grid["columns"] * grid["step"], places % grid["columns"] * grid["step"]
    assert len(places) > 30
    assert (rows > 0).all()
    assert (rows < 24).all()
    assert (columns > 0).all()
    assert (columns < 24).all()
    assert f"used by {len(places):,} of 3,249 patches" in first["text"]
    assert len(b64decode(first["strength"])) == len(places)


def test_the_loupe_opens_where_most_changed():
    before = np.full((200, 300, 3), 90, np.uint8)
    after = before.copy()
    after[140:180, 220:260] += 30
    pictures = [Image.fromarray(pixels) for pixels in (before, after)]
    x, y = comparison.Comparison("denoise", *pictures).changed_most()
    assert x == pytest.approx(240 / 300, abs=0.04)
    assert y == pytest.approx(160 / 200, abs=0.04)
    missing = np.zeros((200, 300), bool)
    missing[20:30, 40:60] = True
    x, y = comparison.Comparison("inpaint", *pictures, missing).changed_most()
    assert abs(300 * x - 50) < 24
    assert abs(200 * y - 25) < 24


def test_a_picture_too_large_for_the_page_is_shrunk_and_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "MAX_SHOWN", 500)
    grey = Image.new("RGB", (50, 40))
    compared = comparison.Comparison("upscale", grey, grey)
    assert [np.asarray(Image.open(path)).shape for path in compared.save(tmp_path)] == [(20, 25, 3)] * 2
    assert "at 50 % of its size" in compared.loupe("#slider", tmp_path)
    monkeypatch.setattr(comparison, "MAX_SHOWN", 2000)
    assert "of its size" not in compared.loupe("#slider", tmp_path)


def test_psnr_is_that_of_the_command_line(tmp_path, roadict, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = samples.picture_samples(tmp_path)
    noisy = next(sample for sample in made if sample.task == "denoise")
    assert samples.find_truth(made, noisy.file) == noisy.truth
    assert samples.find_truth(made, noisy.truth) is None
    for path in (noisy.file, noisy.truth):
        Image.open(path).crop((0, 0, 24, 24)).save(path)
    command = picture_command("denoise", noisy.file.name)
    printed = roadict(*command.arguments, "--compare", noisy.truth.name).out
    compared = comparison.compare(noisy.file, jobs.Job(command, tmp_path, "me"), "denoise", noisy.truth)
    decibels = compared.decibels()
    assert f"noisy: PSNR {decibels['before']}" in printed
    assert f"roadict: PSNR {decibels['after']}" in printed
    loupe = compared.loupe("#pictures-slider", tmp_path)
    assert f"<b>After</b> {decibels['after']}" in loupe
    Image.open(noisy.truth).resize((30, 30)).save(noisy.truth)  # another scale than that of the sample
    assert comparison.compare(noisy.file, jobs.Job(command, tmp_path, "me"), "denoise", noisy.truth).decibels() == {}


def test_charts_have_axes_values_and_a_tolerance():
    falling = 10.0 ** -np.linspace(0, 3, 400)
    text = drawings.residual_curves({"primal": falling, "data error": 2 * falling}, [Mark(400, 1e-9, "ring")], 1e-4)
    root = ElementTree.fromstring(text)
    labels = ["".join(tag.itertext()) for tag in root.iter("text")]
    assert {"iteration", "relative, log scale", "tolerance 10⁻⁴", "primal", "data error", "ring"} <= set(labels)
    assert sum(label.startswith("10−") for label in labels) >= 3
    tips = [json.loads(tag.get("data-tip")) for tag in root.iter("g") if tag.get("data-tip")]
    assert 20 < len(tips) <= drawings.HOVERED
    assert tips[-1]["at"] == "iteration 400"
    assert [line["mean"] for line in tips[-1]["lines"]] == ["0.001", "0.002"]
    for area in root.iter("rect"):
        assert float(area.get("width")) > 0
    four = dict.fromkeys(("primal", "dual", "stationarity", "data error"), falling)
    names = {
        tag.text: float(tag.get("x", 0)) for tag in ElementTree.fromstring(drawings.residual_curves(four)).iter("text")
    }
    assert max(names[name] + 7 * len(name) for name in four) < drawings.WIDTH  # none is cut off


def test_no_curve_crosses_the_label_of_the_tolerance():
    for curve in (10.0 ** -np.linspace(3, 4.2, 300), 10.0 ** -np.linspace(3.6, 4.8, 300), np.full(300, 1.8e-4)):
        root = ElementTree.fromstring(drawings.residual_curves({"primal": curve}, [Mark(300, 0.5, "ring")], 1e-4))
        (label,) = root.findall("g[@class='level']/text")
        path = next(tag for tag in root.iter("path") if tag.get("class") == "line c0" and "L" in tag.get("d"))
        x, y = np.array(re.findall(r"[ML](\S+) ([^ML]+)", path.get("d")), float).T
        middle, half = float(label.get("x")), 3 * len(label.text)
        under = np.interp(np.linspace(middle - half, middle + half, 50), x, y)
        assert (np.abs(under - float(label.get("y")) + 4) > 6).all()


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 1.1, 1.6, 3])
def test_the_label_of_a_point_near_the_tolerance_is_beside_that_of_the_tolerance(share):
    curve = np.repeat([1e-2, 1e-6, 1e-2], [40, 90, 170])  # keeps the tolerance's from the left
    svg = drawings.residual_curves({"primal": curve}, [Mark(300, share * 1e-4, "exact finish: 0.00012")], 1e-4)
    root = ElementTree.fromstring(svg)
    ((left, right, level), (start, end, other)) = (
        (float(text.get("x")) - before * width, float(text.get("x")) + after * width, float(text.get("y")))
        for kind, before, after in (("level", 0.5, 0.5), ("mark c0", 1, 0))
        for text in root.findall(f"g[@class='{kind}']/text")
        for width in [5.5 * len(text.text)]
    )
    assert right < start or end < left or abs(level - other) > 12


def test_the_objective_of_admm_is_said_to_rise():
    assert "It may rise: ADMM starts infeasible" in panels.objective_caption(["primal", "dual"])
    assert panels.objective_caption(["code_change", "atom_change"]) == "Objective."


def test_atoms_form_only_while_they_form(tmp_path):
    job = jobs.Job(picture_command("denoise", "a.png"), tmp_path, "me")
    for name in ("a.png", "a-denoised.png"):
        Image.fromarray(np.random.default_rng(0).integers(0, 255, (24, 24), np.uint8)).save(tmp_path / name)
    for iteration in range(1, 4):
        values = {"start": 1, "iteration": iteration, "objective": 1.0, "measures": {"primal": 0.1, "error": 0.2}}
        job.status.read(json.dumps({"snapshot": values}))
    job.status.verb, job.status.atoms, job.state = "denoising", np.eye(64)[:5], "running"
    running = panels.progress(job, 0)
    assert "5 atoms, as they form" in running
    assert running.index("Residuals") < running.index("Objective")
    job.state = "done"
    shown = results.show_picture(job, comparison.compare(tmp_path / "a.png", job, "denoise"), "#slider")
    assert "as they form" not in "".join(shown)
    assert len(uses_in(shown.details)["atoms"]) == 5
    assert "a fixed number of iterations, and to no tolerance" in shown.details
    assert 'class="line tolerance' not in shown.details
    assert re.findall("atoms used[^<]*", shown.details) == ["atoms used: 0.2", "atoms used"]  # rings at the last point
    job.status.atoms = np.eye(64)[:1]
    assert ">1 atom, most used first<" in "".join(
        results.show_picture(job, comparison.compare(tmp_path / "a.png", job, "denoise"), "#slider")
    )


@pytest.fixture
def enlarged(tmp_path):
    """An upscaling job that is done, and its model, which is not saved yet."""
    small = camera()[100:130, 200:240]
    for name, pixels in (("a.png", small), ("a-enlarged.png", np.kron(small, np.ones((2, 2), np.uint8)))):
        Image.fromarray(pixels).save(tmp_path / name)
    job = jobs.Job(picture_command("upscale", "a.png", scale=2), tmp_path, "me")
    job.state = "done"
    job.status.lines = [f"model from {tmp_path / 'model.npz'}"]
    return job, SuperResolution(2, n_components=12, max_iter=1, random_state=0).fit([camera()[:64, 160:224]])


def details_of(job):
    return unescape(results.show_picture(job, comparison.compare(job.source, job, "upscale"), "#slider").details)


@pytest.mark.parametrize("said", ["model from ", "model saved in "])
def test_atoms_of_a_model_are_details_with_their_places(enlarged, tmp_path, said):
    job, model = enlarged
    assert details_of(job) == ""  # the model has been deleted meanwhile
    model.save(tmp_path / "model.npz")
    job.status.lines = ["training on 12 pictures, once", f"{said}{tmp_path / 'model.npz'}"]
    shown = details_of(job)
    assert "12 atoms, most used first" in shown
    assert "the detail that the model adds where a patch is most like it. Each patch uses one" in shown
    described = uses_in(shown)
    assert (described["side"], described["grid"]["width"], described["grid"]["height"]) == (6, 80, 60)
    assert sum(len(b64decode(atom["at"])) // 2 for atom in described["atoms"]) == 28 * 38  # one for each patch
    for atom in described["atoms"]:
        k = atom["name"] - 1
        detail = model.predictor_.atoms[k] @ model.predictor_.regressors[k]
        values = np.frombuffer(b64decode(atom["values"]), np.int8) / 127
        np.testing.assert_allclose(values, detail / np.abs(detail).max(), atol=0.005)
        assert f"used by {len(b64decode(atom['strength']))} of 1,064 patches" in atom["text"]


def test_an_upscaling_that_trained_shows_atoms_and_the_run(enlarged, tmp_path):
    job, model = enlarged
    job.status.runs, job.status.measures = [[3.0, 2.0]], {"primal": [0.2, 0.1], "error": [0.3, 0.2]}
    job.status.atoms = model.predictor_.atoms
    (tmp_path / "model.npz").write_bytes(b"damaged")
    assert "12 atoms, in features of patches." in details_of(job)
    assert "rd-explorer" not in details_of(job)
    model.save(tmp_path / "model.npz")
    shown = details_of(job)
    assert shown.index("rd-explorer") < shown.index(results.COURSE)
    assert "in features of patches" not in shown


def test_atoms_of_coupled_dictionaries_are_shown_too(enlarged, tmp_path):
    job, _ = enlarged
    model = SuperResolution(2, approach="zeyde", n_components=12, max_iter=1, random_state=0)
    model.fit([camera()[:64, 160:224]]).save(tmp_path / "model.npz")
    shown = details_of(job)
    assert "Each patch uses a few" in shown
    first = uses_in(shown)["atoms"][0]
    values, high = np.frombuffer(b64decode(first["values"]), np.int8), model.predictor_.high[first["name"] - 1]
    assert np.corrcoef(values, high)[0, 1] > 0.9  # its partner


@pytest.mark.parametrize("run", [[3.0, 2.0, math.nan], [3.0, math.inf], [math.nan, math.nan]])
def test_an_objective_that_is_not_finite_is_drawn_as_far_as_it_goes(run):
    drawing = drawings.objective_curve([run], [Mark(len(run), run[-1], "the end")])
    assert ("not finite" in drawing) == (not np.isfinite(run).any())
    assert "nan" not in drawing
    assert "inf" not in drawing.replace("infinite", "")
