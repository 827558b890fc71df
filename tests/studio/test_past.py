"""Past runs: kept with their files, listed, shown again after a restart, compared, and removed in time."""

import copy
import json
import os
import re
import shutil
import time
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from roadict import ROAD, ROADCV, AlternatingDictionaryLearning
from roadict.studio import choices, jobs, methods, past, versus
from roadict.studio.commands import learn_command, picture_command
from roadict.synthetic import planted

DATA = planted(120, 8, 10, sparsity=2, snr_db=30, random_state=0).data


@pytest.fixture(scope="module")
def model():
    return ROAD(10, epsilon=0.05, max_iter=30, n_init=1, random_state=0).fit(DATA)


@pytest.fixture
def runs(tmp_path):
    """Past runs in two folders, as a studio has them."""
    return studio(tmp_path, "first")


def studio(tmp_path, name):
    (tmp_path / name).mkdir()
    return past.PastRuns(tmp_path / name, tmp_path / "store")


def finished(runs, state="done", grey=50, size=(20, 30), folder=None):
    """Settle a job that has denoised a picture."""
    folder = folder or runs.new_folder()
    job = jobs.Job(picture_command("denoise", "-a.png", sigma=20), folder, jobs.Owner("pictures", "page"))
    for name in ("-a.png", "-a-denoised.png"):
        Image.fromarray(np.full(size, grey, np.uint8)).save(job.folder / name)
    job.state = state
    job.status.lines = ["sigma 20 of 255", "roadict: warning: slow"]
    job.status.runs, job.status.atoms = [[3.0, 2.0]], np.eye(4, dtype=np.float32)
    runs.settle(job)
    return job


def learned(runs, model, data=DATA):
    job = jobs.Job(learn_command("d.npy"), runs.new_folder(), jobs.Owner("signals", "page"))
    np.save(job.folder / "d.npy", data)
    model.save(job.result)
    job.state = "done"
    runs.settle(job)
    return job


def test_a_run_is_shown_again_by_the_next_studio(runs, tmp_path):
    job = finished(runs, "stopped")
    later = studio(tmp_path, "second")
    (run,) = later.listed()
    assert (run.task, run.name, run.stopped) == ("denoise", "-a.png", True)
    assert run.headline == "30 × 20 pixels, noise 20"
    assert run.thumbnail.startswith("data:image/jpeg;base64,")
    again = later.open(run.id)
    assert again.folder.parent == tmp_path / "second"  # which the page may show files of
    assert again.result.read_bytes() == job.result.read_bytes()
    assert again.source.read_bytes() == job.source.read_bytes()
    assert (again.state, again.command, again.ended.is_set()) == ("stopped", job.command, True)
    assert (again.messages, again.warnings) == (job.messages, job.warnings)
    assert again.status.runs == job.status.runs
    np.testing.assert_array_equal(again.status.atoms, job.status.atoms)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX permissions")
def test_other_users_cannot_read_past_runs(runs, tmp_path):
    finished(runs)
    assert (tmp_path / "store").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_only_runs_with_a_result_are_kept(runs, state):
    job = finished(runs, state)
    assert not job.folder.exists()
    assert runs.listed() == []


def test_number_and_size_of_runs_are_bounded(runs, monkeypatch):
    monkeypatch.setattr(past, "MAX_RUNS", 3)
    made = [finished(runs) for _ in range(5)]
    assert [run.id for run in runs.listed()] == [job.folder.name for job in made[:1:-1]]
    assert [job.folder.exists() for job in made] == [False, False, True, True, True]
    monkeypatch.setattr(past, "MAX_BYTES", 1)
    last = finished(runs)
    assert [run.id for run in runs.listed()] == [last.folder.name]


def test_a_long_run_is_kept_though_many_that_began_later_have_ended(runs, monkeypatch):
    monkeypatch.setattr(past, "MAX_RUNS", 2)
    folder = runs.new_folder()
    later = [finished(runs) for _ in range(3)]
    long = finished(runs, folder=folder)
    assert {run.id for run in runs.listed()} == {folder.name, later[-1].folder.name}
    assert long.result.exists()


def test_a_copy_under_way_in_another_studio_is_not_pruned(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(past, "MAX_RUNS", 1)
    finished(runs)
    under_way = tmp_path / "store" / ".partial-2"
    shutil.copytree(tmp_path / "store" / runs.listed()[0].id, under_way)
    last = finished(runs)
    assert [run.id for run in runs.listed()] == [last.folder.name]
    runs.clear()
    assert [*(tmp_path / "store").iterdir()] == [under_way]


def test_runs_of_more_than_a_week_ago_are_removed(runs, tmp_path):
    old, recent = finished(runs), finished(runs)
    for job, days in ((old, 7.1), (recent, 6.9)):
        then = time.time() - days * 24 * 3600
        os.utime(tmp_path / "store" / job.folder.name, (then, then))
    assert [run.id for run in runs.listed()] == [recent.folder.name], "by a studio that has run all the time"
    assert [run.id for run in studio(tmp_path, "second").listed()] == [recent.folder.name]


@pytest.mark.parametrize("damage", ["status", "arrays"])
def test_a_run_of_another_release_is_refused_in_words(runs, tmp_path, damage):
    folder = tmp_path / "store" / finished(runs).folder.name
    if damage == "status":
        record = json.loads((folder / "roadict-run.json").read_text())
        (folder / "roadict-run.json").write_text(json.dumps(record | {"status": {"unknown": 1}}))
    else:
        (folder / "roadict-run.npz").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"This run cannot be read: .*; run its command again"):
        studio(tmp_path, "second").open(folder.name)


def test_all_runs_are_cleared(runs, tmp_path):
    jobs_made = [finished(runs), finished(runs)]
    runs.clear()
    assert runs.listed() == []
    assert not [job for job in jobs_made if job.folder.exists()]
    assert list((tmp_path / "store").iterdir()) == []


def test_what_is_no_run_is_neither_listed_nor_opened(runs, tmp_path):
    job = finished(runs)
    store = tmp_path / "store"
    shutil.copytree(store / job.folder.name, store / "damaged")
    (store / "damaged" / "roadict-run.json").write_text("{}")
    (store / ".partial-1").mkdir()
    shutil.copytree(store / job.folder.name, tmp_path / "outside")
    assert [run.id for run in runs.listed()] == [job.folder.name]
    for name in ("damaged", "../outside", "gone", ""):
        with pytest.raises(ValueError, match="This run has been removed"):
            runs.open(name)


def test_a_run_that_cannot_be_kept_can_still_be_shown(tmp_path):
    (tmp_path / "store").write_text("a file, not a folder")
    runs = studio(tmp_path, "first")
    folder = runs.new_folder()
    np.save(folder / "d.npy", planted(60, 4, 6, sparsity=1, random_state=0).data)
    job = jobs.Job(learn_command("d.npy", n_components=6), folder, jobs.Owner("signals", "page"), runs.settle)
    job.run()
    assert (job.state, job.result.exists()) == ("done", True)
    assert [text for text in job.warnings if text.startswith("this run is not among the past runs: ")]


def test_models_have_their_atoms_as_thumbnail_and_headline(runs, model):
    learned(runs, model)
    (run,) = runs.listed()
    assert run.headline == f"ROAD, 10 atoms, error {model.error_:.2g}"
    exact = copy.deepcopy(model)
    exact.error_ = 5.1e-11
    learned(runs, exact)
    assert runs.listed()[0].headline == "ROAD, 10 atoms, error 5.1\xa0×\xa010⁻¹¹"  # as elsewhere on the page
    assert run.thumbnail.startswith("data:image/png;base64,")


def test_two_runs_are_compared(runs, model):
    same, other = learned(runs, model), learned(runs, ROAD(9, epsilon=0.05, max_iter=30, random_state=1).fit(DATA))
    shown = versus.side_by_side(same, same)
    assert "10 of 10 atoms on the left have a partner on the right" in shown
    assert "1 of 2 atoms on the left has a partner" in versus._atoms(np.eye(3)[:2], np.eye(3)[1:])[1]
    assert "rd-differs" not in shown
    assert "<td>10</td><td>9</td>" in versus.side_by_side(same, other)
    grey, light = finished(runs, grey=50), finished(runs, grey=53)
    assert "The two pictures are equal." in versus.side_by_side(grey, grey)
    assert "The two pictures differ by 3 of 255 grey levels" in versus.side_by_side(grey, light)
    assert "differ in size" in versus.side_by_side(grey, finished(runs, size=(9, 9)))
    with pytest.raises(ValueError, match="tick two runs of one kind"):
        versus.side_by_side(same, grey)


def test_objectives_are_compared_only_where_both_runs_minimise_the_same(runs, model):
    def compared(other, data=DATA):
        text = unescape(versus.side_by_side(learned(runs, model), learned(runs, other, data)))
        rows = re.findall("<th[^>]*>(.*?)</th></tr>\\s*<tr[^>]*><td>(.*?)</td><td>(.*?)</td>", text)
        return {name: values for name, *values in rows}, text

    short = ROAD(9, epsilon=0.05, max_iter=5, tol=0, n_init=1, random_state=1).fit(DATA)
    rows, _ = compared(short)
    assert rows["Objective"][0] == f"{np.abs(model.codes_).sum():.6g}"
    assert rows["Ended"][1] == f"not converged after {short.n_iter_} iterations"
    two_stage = {
        update: AlternatingDictionaryLearning(10, update=update, max_iter=3, tol=0, random_state=0).fit(DATA)
        for update in ("ksvd", "mod", "sequential")
    }
    rows, text = compared(two_stage["ksvd"])
    assert "Objective" not in rows
    assert rows["Method"] == ["ROAD", "K-SVD"]
    assert {"Relative error", "Coefficients per signal", "Atoms"} < rows.keys()
    assert "on the left the sum of the absolute coefficients is made small, on the right the data error." in text
    rows, text = compared(ROAD(10, epsilon=0.2, max_iter=5, tol=0, n_init=1, random_state=1).fit(DATA))
    assert "Objective" not in rows
    assert "they depend on the error bound, which differs: 0.05 and 0.2." in text
    rows, text = compared(model, 2 * DATA)
    assert "Objective" not in rows
    assert "The two runs have different signals" in text
    same = methods.why_not_compared((learned(runs, model),) * 2, (two_stage["ksvd"], two_stage["mod"]))
    assert same == ""
    other = methods.why_not_compared((learned(runs, model),) * 2, (two_stage["ksvd"], two_stage["sequential"]))
    assert other.endswith("on the right the sum of the absolute coefficients plus the squared data error.")


def test_the_time_of_a_run_is_kept_and_compared(runs, tmp_path):
    job = jobs.Job(picture_command("denoise", "a.png"), runs.new_folder(), jobs.Owner("pictures", "page"))
    for name in ("a.png", "a-denoised.png"):
        Image.new("L", (9, 9)).save(job.folder / name)
    job.state, job.seconds = "done", 75.0
    runs.settle(job)
    again = studio(tmp_path, "second").open(job.folder.name)
    shown = versus.side_by_side(again, finished(runs))
    assert "<td>1 min 15 s</td><td>–</td>" in shown  # the other was not run
    assert "The two runs are of different pictures." in shown


def tiles(side):
    """Number and drawing of every atom on one side, None for an empty place."""
    figures = re.findall(r"<figure[^>]*>(.*?)</figure>", side)
    found = [re.fullmatch("(.*)<figcaption>(.*?)</figcaption>", text) for text in figures]
    return [tile and (tile[2], re.findall(' (?:d|src)="([^"]*)"', tile[1])[-1]) for tile in found]


@pytest.mark.parametrize("length", [8, 9], ids=["curves", "pictures"])
def test_partners_have_the_same_place_and_numbers_of_both_runs(length):
    first = np.random.default_rng(0).normal(size=(4, length))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second = np.vstack([first[2], np.eye(length)[:1], -first[0]])  # the largest value of all is in it
    (left, right), text = versus._atoms(first, second)
    assert text.startswith("2 of 4 atoms on the left have a partner on the right (correlation of 0.95 or more).")
    assert text.endswith("same place: 1 ↔ 3 is atom 1 on the left and 3 on the right.")
    left, right = tiles(left), tiles(right)
    assert [name for name, _ in left] == ["1 ↔ 3", "2", "3 ↔ 1", "4"]
    assert right[0] == left[0]  # its sign turned
    assert right[2] == left[2]
    assert sorted([right[1], right[3]], key=bool)[0] is None  # for one of two atoms nothing is left
    assert next(filter(None, (right[1], right[3])))[0] == "2"
    (left, right), _ = versus._atoms(second, first)
    assert [name for name, _ in tiles(left)] == ["1 ↔ 3", "2", "3 ↔ 1"]
    assert len(tiles(right)) == 4  # one more, after the others
    (left, right), text = versus._atoms(np.eye(3), np.eye(4))
    assert [name for name, _ in tiles(left) + tiles(right)] == ["1", "2", "3", "1", "2", "3", "4"]
    assert text == "The atoms have different lengths."


def test_atoms_are_compared_whatever_their_order_and_sign(runs, model):
    turned = copy.deepcopy(model)
    turned.components_ = -model.components_[::-1].copy()
    assert "10 of 10 atoms on the left" in versus.side_by_side(learned(runs, model), learned(runs, turned))


def test_the_curve_of_the_choice_and_unstable_atoms_are_drawn(model):
    assert choices.figures(model) == {}
    model = copy.deepcopy(model)
    model.atom_stability_ = np.r_[0.5, np.ones(9)]
    captions = list(choices.figures(model))
    assert captions == [
        "Stability, most used first: 9 of 10 atoms recur in halves of the data",
        "1 atom not to be trusted: atom 1",
    ]
    chosen = ROADCV([8, 10], n_splits=1, random_state=0).fit(DATA)
    ((caption, drawn),) = choices.figures(chosen).items()
    assert f"{chosen.n_components_} chosen" in caption
    assert drawn.count("<circle") == 1
    chosen.n_iter_ = 0  # as after "Stop and keep", before all numbers were compared
    ((caption, drawn),) = choices.figures(chosen).items()
    assert caption == "Error of hidden entries by the number of atoms: none chosen yet"
    assert "<circle" not in drawn


def test_charts_of_the_choice_have_titles_and_values():
    charts = {
        choices.hidden_error(np.array([8, 9, 12]), np.array([0.5, 0.25, 0.3]), 9): (
            {"error of hidden entries", "number of atoms"},
            [("8 atoms", "0.5"), ("9 atoms", "0.25"), ("12 atoms", "0.3")],
        ),
        choices.stability_bars(np.array([1.0, 0.42]), np.array([7, 3])): (
            {"stability", "rank of the atom"},
            [("atom 7", "1"), ("atom 3", "0.42")],
        ),
    }
    for drawn, (titles, values) in charts.items():
        root = ElementTree.fromstring(drawn)
        assert titles <= {text.text for text in root.iter("text")}
        tips = [json.loads(group.get("data-tip")) for group in root.iter("g") if group.get("data-tip")]
        assert [(tip["at"], tip["lines"][0]["mean"]) for tip in tips] == values


def test_closed_pages_leave_their_jobs_to_the_next(tmp_path):
    queue = jobs.JobQueue()
    mine, other = jobs.Owner("pictures", "mine"), jobs.Owner("pictures", "other")
    job = jobs.Job(picture_command("denoise", "absent.png"), tmp_path, mine)
    queue._unfinished.append(job)  # as if it ran
    assert queue.adopt(other) is None
    assert (queue.within_reach("mine"), queue.within_reach("other")) == ([job], [])
    queue.abandon("mine")
    assert queue.within_reach("other") == [job]
    assert queue.adopt(jobs.Owner("signals", "other")) is None
    assert queue.unfinished(mine) == [job]  # a page that was only out of reach can still cancel it
    job.in_view = False
    assert queue.adopt(other) is job
    assert (job.owner, job.in_view) == (other, True)
    assert (queue.within_reach("mine"), queue.within_reach("other")) == ([], [job])
    queue.abandon("other")
    assert queue.adopt(mine) is None  # closed before
    assert queue.adopt(other) is None
    last = jobs.Owner("pictures", "last")
    assert queue.adopt(last) is job
    queue.cancel(last)
    assert job.state == "cancelled"
    queue.close()


def test_a_page_closed_while_its_job_is_prepared_leaves_it_to_the_next(tmp_path):
    queue, next_page = jobs.JobQueue(), jobs.Owner("pictures", "next")
    queue.abandon("mine")
    job = jobs.Job(picture_command("denoise", "absent.png"), tmp_path, jobs.Owner("pictures", "mine"))
    job.run = lambda: None  # it only waits
    queue.submit(job)
    assert queue.adopt(next_page) is job
    queue.close()


def test_times_have_a_day_if_it_is_another():
    noon = time.mktime((2026, 3, 2, 12, 0, 0, 0, 0, -1))
    shown = [past.when(noon - 3600 * hours, noon) for hours in (1, 13, 50)]
    assert shown == ["11:00", "yesterday 23:00", "28 Feb 10:00"]


def test_records_are_plain_json(runs):
    job = finished(runs)
    record = json.loads((job.folder / "roadict-run.json").read_text())
    assert record["status"]["lines"] == job.status.lines
