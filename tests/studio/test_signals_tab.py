"""The tab for signals without a browser: signs and known atoms reach the job, its command and its errors."""

import html
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from roadict import ROAD, load
from roadict.synthetic import planted

PLANTED = planted(120, 6, 8, sparsity=2, random_state=0)
ATOMS = np.abs(PLANTED.dictionary)
DATA = np.abs(PLANTED.codes) @ ATOMS


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Work in a folder with signals, known atoms, and files that are no such atoms."""
    monkeypatch.chdir(tmp_path)
    Path("other").mkdir()
    np.save("signals.npy", DATA)
    np.savetxt("known atoms.csv", 3 * ATOMS[:2], delimiter=",", fmt="%.17g")
    np.save("narrow.npy", ATOMS[:2, :5])
    np.save("negative.npy", -ATOMS[:2])
    np.savez("archive.npz", ATOMS[:2])
    np.save("other/signals.npy", ATOMS[:2])
    np.save("three.npy", DATA[:3])
    np.save("X.npy", -DATA)
    np.save("holes.npy", np.where(np.arange(6) == 1, np.nan, DATA[:3]))
    return tmp_path


@pytest.fixture
def learned(files):
    """A model, for clicks of which only the command counts."""
    ROAD(8, max_iter=1, tol=0, n_init=1, random_state=0).fit(DATA).save("learned.npz")
    return str(files / "learned.npz")


@pytest.fixture
def learn(unseen, files):
    """Return a function that clicks "Learn" once for every set of fields, and returns what is shown and the command."""

    def run(*clicks):
        paths = [{name: str(files / values[name]) for name in ("data", "fixed") if name in values} for values in clicks]
        ends = unseen("signals", *(values | path for values, path in zip(clicks, paths, strict=True)))
        assert all(end["enabled"] for end in ends)
        return [(html.unescape(end["panel"]), end["command"]) for end in ends]

    return run


def test_signs_and_known_atoms_are_learned_as_on_the_command_line(learn, roadict):
    fields = {"data": "signals.npy", "fixed": "known atoms.csv", "n_components": "8", "signs": "Both nonnegative"}
    [(panel, command)] = learn(fields)
    assert "constraints: nonnegative codes, nonnegative atoms, 2 known atoms" in panel
    assert command == (
        "roadict learn signals.npy -o signals-model.npz -k 8 --positive both --fixed 'known atoms.csv' --seed 0"
    )
    assert roadict(*shlex.split(command)[1:], "-q") == (0, "", "")
    model, again = load("result-0.npz"), load("signals-model.npz")
    np.testing.assert_array_equal(model.components_, again.components_)
    np.testing.assert_array_equal(model.codes_, again.codes_)
    np.testing.assert_allclose(model.components_[:2], ATOMS[:2], atol=1e-12)
    assert min(model.components_.min(), model.codes_.min()) >= 0


def test_a_job_without_a_folder_ends_in_an_error_and_the_button_is_enabled_again(learn):
    [(panel, command)] = learn({"data": "signals.npy", "homeless": True})
    assert "does not exist" in panel
    assert "Errno" not in panel
    assert command is None


def test_every_choice_of_signs_has_its_option(learn, learned):
    fields = {"data": "signals.npy", "n_components": "8", "epsilon": "0.5", "seed": "3", "learned": learned}
    choices = {"Codes nonnegative": " --positive codes", "Atoms nonnegative": " --positive atoms"}
    ends = learn(fields, *(fields | {"signs": signs} for signs in choices))
    for (_, command), option in zip(ends, ["", *choices.values()], strict=True):
        assert command == f"roadict learn signals.npy -o signals-model.npz -k 8{option} --epsilon 0.5 --seed 3"


def test_defaults_are_told_from_what_is_found_in_the_data(learn):
    """Auto is found in the data, in every field; twice and a tenth of the entries are rules, and need no search."""
    fields = {"data": "signals.npy", "method": "ksvd"}
    ends = learn({"data": "signals.npy"}, fields, {"data": "signals.npy", "choose": True, "n_components": "auto"})
    commands = [command.removeprefix("roadict learn signals.npy -o signals-model.npz ") for _, command in ends]
    assert commands == ["--seed 0", "--method ksvd --seed 0", "-k auto --seed 0"]
    assert [len(load(f"result-{i}.npz").components_) for i in range(2)] == [12, 12]  # twice the 6 entries


def test_a_result_that_cannot_be_drawn_ends_in_an_error_beside_its_files(learn):
    [(panel, command)] = learn({"data": "signals.npy", "n_components": "8", "damaged": True})
    assert "The page cannot show this run (ModelFileError: " in panel
    assert "its files are not affected" in panel
    assert command == "roadict learn signals.npy -o signals-model.npz -k 8 --seed 0"


def test_number_of_atoms_noise_and_stability_come_from_the_data(learn):
    fields = {"data": "signals.npy", "choose": True, "n_components": " 7:9 ", "stability": True}
    [(panel, command)] = learn(fields)
    assert command == "roadict learn signals.npy -o signals-model.npz -k 7:9 --stability --seed 0"
    model = load("result-0.npz")
    stable = int((model.atom_stability_ >= 0.95).sum())
    assert model.n_components_ in (7, 8, 9)
    assert f"Error of hidden entries by the number of atoms: {model.n_components_} chosen" in panel
    assert f"Stability, most used first: {stable} of {model.n_components_} atoms recur" in panel
    assert "hidden error" not in panel  # the table of the command line, which is drawn instead


def test_what_cannot_be_is_refused_in_the_words_of_the_page(learn):
    refused = {
        "“Known atoms” has 5 columns, but the signals have 6 entries; give atoms of that width": {
            "fixed": "narrow.npy",
        },
        "“Known atoms” has 2 rows, which count in “Atoms” 1; enter 2 or more as “Atoms”": {
            "fixed": "known atoms.csv",
            "n_components": "1",
        },
        "(first: row 1, column 1); give nonnegative numbers, or choose “Any sign”": {
            "fixed": "negative.npy",
            "signs": "Atoms nonnegative",
        },
        "“Known atoms” does not belong to “Method” K-SVD; leave it out": {"fixed": "known atoms.csv", "method": "ksvd"},
        "“Codes nonnegative” is not possible with “Method” BLOTLESS; use MOD or K-SVD": {
            "signs": "Codes nonnegative",
            "method": "blotless",
        },
        "“Error bound” 2 must be below 1": {"epsilon": "2"},
        "lacks 3 of its entries; fill them, or choose “Method” ROAD and tick “Empty cells": {
            "data": "holes.npy",
            "method": "ksvd",
        },
        "three.npy has 3 signals; at least 10 are needed to compare numbers of atoms: drop more, or untick “Find the": {
            "data": "three.npy",
            "choose": True,
            "n_components": "auto",
        },
        "“Numbers to try” 130 is more than the 120 signals, which could then be atoms themselves; enter smaller": {
            "choose": True,
            "n_components": "4:130",
        },
        "X.npy has no positive entry, so that nonnegative codes and atoms reach nothing of it; choose “Any sign”": {
            "data": "X.npy",
            "signs": "Both nonnegative",
        },
        "Numbers to try is 8; it must be a range such as 16:64 or 16:64:4, or auto": {
            "choose": True,
            "n_components": "8",
        },
        "Atoms is auto; enter a number or “twice the entries”, or tick “Find the number of atoms in the data”": {
            "n_components": "auto",
        },
        "Atoms is 2.5; it must be a whole number of at least 1, or twice the entries": {"n_components": "2.5"},
        "“Error bound” does not go with “Numbers to try” auto, which chooses it too; set it to auto, or untick “Find": {
            "choose": True,
            "n_components": "auto",
            "epsilon": "0.1",
        },
        "archive.npz is none of .npy, .csv": {"fixed": "archive.npz"},
        "Signals and known atoms are both called signals.npy; rename one of them": {"fixed": "other/signals.npy"},
    }
    ends = learn(*({"data": "signals.npy"} | fields for fields in refused.values()))
    for (panel, command), sentence in zip(ends, refused, strict=True):
        assert "That did not work" in panel
        assert sentence in panel
        assert not re.search(r"--\w| -k |\bpass\b|[a-z]_[a-z]|\bROADCV\b", panel), panel
        assert command is None


def test_the_form_of_a_past_run_gives_its_command_again(learn, learned):
    known = {"fixed": "known atoms.csv", "n_components": "8", "signs": "Both nonnegative", "seed": "4"}
    bound = {"epsilon": "0.5", "missing": True}
    given = {
        "-k 8 --positive both --fixed 'known atoms.csv' --epsilon 0.5 --missing --seed 4": known | bound,
        "--method ksvd --sparsity 2 --seed 0": {"method": "ksvd", "sparsity": "2"},
        "-k 7:8 --stability --seed 0": {"choose": True, "n_components": "7:8", "stability": True},
    }
    clicks = [click for fields in given.values() for click in ({"data": "signals.npy"} | fields, {"again": True})]
    commands = [command for _, command in learn(*({"learned": learned} | click for click in clicks))]
    expected = [f"roadict learn signals.npy -o signals-model.npz {options}" for options in given]
    assert commands[::2] == commands[1::2] == expected


FORM = {
    "data": None,
    "fixed": None,
    "signs": "Codes nonnegative",
    "missing": True,
    "choose": True,
    "stability": False,
    "method": "ksvd",
    "n_components": "16:64",
    "epsilon": "auto",
    "sparsity": "3",
    "seed": "7",
}


def test_a_saved_form_is_restored_with_files_of_this_studio_alone(unseen, files, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret.npy"
    outside.write_bytes(b"")
    (files / "None").write_bytes(b"")  # no file is not this one
    own = {"data": str(files / "signals.npy")}
    saved = [FORM, FORM | own, FORM | {"data": str(outside)}, FORM | {"data": str(files / "gone.npy")}]
    saved += [FORM | {"data": f"{files}/../{outside.parent.name}/{outside.name}"}, FORM | {"data": "http://localhost/"}]
    restored = unseen("signals", *({"saved": form} for form in saved))
    assert restored == [FORM, FORM | own, *[FORM] * 4]


def test_a_form_that_another_release_has_saved_is_not_restored(unseen):
    others = [
        None,
        "text",
        {},
        FORM | {"new": 1},
        FORM | {"method": "gone"},
        FORM | {"seed": 3},
        FORM | {"missing": []},
    ]
    assert unseen("signals", *({"saved": form} for form in others)) == [{}] * len(others)
