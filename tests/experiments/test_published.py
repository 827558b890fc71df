"""Claims of the paper's text without a verdict, and doubts about its tables, on made-up rows."""

import pytest

from made_up_rows import by_method, error, synthetic
from roadict.experiments.published import PAPER_SOURCE, doubts, unjudged
from roadict.experiments.verdicts import verdicts


def test_what_the_text_claims_is_compared_with_the_alternating_lasso_too():
    def result(trial):
        ahead = trial.method.name == "lasso" and trial.panel == "24-48-6"
        return error(1e-5 if ahead else by_samples.get(trial.problem.n_samples, 0.02))

    by_samples = {800: 5e-3, 1000: 5e-3}
    rows = synthetic("noise-free", result, 6)
    [sentence] = [text for text in unjudged(rows, verdicts(rows)) if "fewer samples" in text]
    assert sentence.endswith("needs fewer than ROAD with ρ = 10 at 24 features, 48 atoms, 6 nonzeros (Fig. 2).")


def test_runs_that_do_not_find_the_dictionary_are_counted():
    rows = synthetic("solvers", lambda trial: error(1e-5 if trial.seed % 3 else 0.02), 6)
    [sentence] = [text for text in unjudged(rows, verdicts(rows)) if "trapped" in text]
    assert sentence.endswith("2 of 6 runs at N = 400 in Fig. 1 end at errors of 0.001 and more.")
    rows = synthetic("solvers", lambda trial: error(1e-5), 6)
    assert not [text for text in unjudged(rows, verdicts(rows)) if "trapped" in text]


@pytest.mark.parametrize(("bicubic", "found"), [(True, True), (False, False)])
def test_what_exceeds_bicubic_is_named_where_bicubic_has_rows(bicubic, found):
    gains = {"bicubic": 22.0, "ksvd-lasso": 23.0}
    rows = synthetic("digits", lambda trial: {"psnr": gains.get(trial.method.name, 20.0)})
    rows = [row for row in rows if bicubic or row["settings"]["method"]["name"] != "bicubic"]
    sentences = [text for text in unjudged(rows, verdicts(rows)) if "higher resolution" in text]
    assert len(sentences) == found
    assert all("K-SVD by 1.00 dB" in text and "BLOTLESS" not in text for text in sentences)


@pytest.mark.parametrize("number", [3, 6])
def test_tentative_comparisons_do_not_speak_against_all_scenarios(number):
    """At 20 and at 30 dB ROAD leads in six trials; on the zebra it trails."""
    rows = synthetic("noisy", by_method({"road-paper": 1e-3}, 0.05))
    rows += synthetic("zebra", lambda trial: {"psnr": 27.0 if trial.method.is_road else 28.0}, number)
    sentences = [text for text in unjudged(rows, verdicts(rows)) if "all the scenarios" in text]
    assert len(sentences) == (number == 6)
    assert all("of the 3 comparisons" in text and "2 are" in text for text in sentences)


@pytest.mark.parametrize(
    ("source", "psnr", "found"),
    [(PAPER_SOURCE, 28.5, True), (PAPER_SOURCE, 27.5, False), ("ours", 28.5, False)],
)
def test_a_plain_ksvd_above_the_papers_is_reported(source, psnr, found):
    """The paper's has 27.87 dB; on other pictures ours says nothing about it."""
    rows = synthetic("zebra", lambda _: {"psnr": psnr})
    for row in rows:
        row["settings"]["problem"]["source"] = source
    sentences = [text for text in doubts(rows) if "K-SVD" in text]
    assert len(sentences) == found
    assert all("0.63 dB" in text for text in sentences)
