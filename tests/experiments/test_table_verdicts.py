"""Verdicts on Tables I and II on made-up rows."""

import pytest

from made_up_rows import draws, synthetic
from roadict.experiments.verdicts import verdicts


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ({"road": 28.2, "ksvd": 27.9, "blotless": 27.8, "mod": 26.7}, "reproduced"),
        ({"road": 28.2, "ksvd": 27.7, "blotless": 27.8, "mod": 26.7}, "partly"),
        ({"road": 27.0, "ksvd": 27.9, "blotless": 27.8, "mod": 26.7}, "not reproduced"),
        # With the paper's ρ, or with ours, only.
        ({"road": 28.2, "road-paper": 27.0, "ksvd": 27.9, "blotless": 27.8, "mod": 26.7}, "partly"),
        ({"road": 27.0, "road-paper": 28.2, "ksvd": 27.9, "blotless": 27.8, "mod": 26.7}, "partly"),
    ],
)
def test_tables_compare_with_one_coder_and_report_random_patches(scores, expected):
    def result(trial):
        learner, _, coder = trial.method.name.removesuffix("-long").rpartition("-")
        # Another coder must not count.
        known = {"road-paper": scores["road"]} | scores
        return {"psnr": known.get(learner, 20.0) if coder == "lasso" else 40.0}

    (verdict,) = verdicts(synthetic("zebra", result))
    assert verdict.outcome == expected
    table = {line[0]: line[1] for line in verdict.table}
    assert table["ROAD"] == f"{scores['road']:.2f}"
    assert table["ROAD (ρ = 10)"] == f"{scores.get('road-paper', scores['road']):.2f}"
    assert (table["random patches"], table["bicubic"]) == ("20.00", "40.00")


def pictures(leads, spread=0.0, random=20.0):
    """PSNR of a table: a level of each seed that is common to all methods, leads and their spread."""

    def result(trial):
        learner = trial.method.name.removesuffix("-long").rpartition("-")[0]
        level = 10.0 * (trial.seed % 4)
        if learner not in leads:
            return {"psnr": level + random}
        return {"psnr": level + 25 + leads[learner] + spread * float(draws(trial).standard_normal())}

    return result


def test_a_lead_within_two_standard_errors_is_a_tie():
    """As in Table I, Zeyde: the only ROAD that is ahead is so by 0.00 ± 0.07 dB."""
    leads = {"road": -0.31, "road-paper": 0.004, "ksvd": -0.17, "blotless": -0.19, "mod": 0.0}
    (verdict,) = verdicts(synthetic("zebra", pictures(leads, 0.05), 40))
    assert verdict.outcome == "not reproduced"
    assert "ROAD trails MOD, the best of the others (−0.3" in verdict.reason
    assert "ROAD (ρ = 10) ties with MOD" in verdict.reason
    assert "come in another order" in verdict.reason


def test_an_order_within_two_standard_errors_is_none():
    leads = {"road": 0.4, "road-paper": 0.4, "ksvd": 0.004, "blotless": 0.0, "mod": -0.4}

    def result(trial):
        spread = 0.05 * (-1) ** trial.seed if trial.method.name.startswith("ksvd") else 0.0
        return {"psnr": pictures(leads)(trial)["psnr"] + spread}

    (verdict,) = verdicts(synthetic("zebra", result, 20))
    names = [line[0] for line in verdict.table]
    assert names.index("K-SVD") < names.index("BLOTLESS") < names.index("MOD")  # by plain means, the paper's order
    assert verdict.outcome == "partly"
    assert "too close to rank" in verdict.reason


def test_what_is_common_to_a_seed_does_not_hide_a_lead():
    leads = {"road": 0.4, "road-paper": 0.4, "ksvd": 0.0, "blotless": -0.2, "mod": -0.4}
    (verdict,) = verdicts(synthetic("zebra", pictures(leads, 0.05), 20))
    assert verdict.outcome == "reproduced"
    assert "the others come in the paper's order" in verdict.reason


def test_random_patches_that_beat_learned_dictionaries_are_reported():
    leads = {"road": 0.16, "road-paper": -0.13, "ksvd": 0.0, "blotless": 0.0, "mod": 0.01}
    (verdict,) = verdicts(synthetic("zebra", pictures(leads, 0.01, random=25.1), 20))
    assert verdict.outcome == "partly"
    assert verdict.reason.endswith("random patches, not learned at all, beat ROAD (ρ = 10), K-SVD, BLOTLESS and MOD.")


def equal_time(trial):
    """Two-stage methods that come to lead ROAD, in the paper's order, once they have its CPU time."""
    level = {"road": 28.0, "road-paper": 28.0, "ksvd": 27.6, "blotless": 27.4, "mod": 27.2, "random": 20.0}
    name = trial.method.name.removesuffix("-long").removesuffix("-lasso").removesuffix("-omp")
    return {"psnr": level.get(name, 20.0) + trial.method.name.endswith("-long")}


def test_two_stage_methods_are_judged_at_the_cpu_time_of_road():
    (verdict,) = verdicts(synthetic("zebra", equal_time))
    assert verdict.outcome == "not reproduced"
    assert "CPU time" in verdict.reason
    assert "ROAD trails K-SVD, the best of the others (−0.60 dB)" in verdict.reason
    table = {line[0]: line[1:] for line in verdict.table}
    assert table["K-SVD"] == ("28.60", "−0.60", "−0.60")
    assert table["K-SVD, fewer iterations"] == ("27.60", "+0.40", "+0.40")


@pytest.mark.parametrize(("engine", "cpu", "equal"), [("auto", 0.96, True), ("auto", 0.9, False), ("cuda", 1, False)])
def test_equal_cpu_time_is_claimed_of_rows_that_took_it(engine, cpu, equal):
    def cpu_of(trial):
        return cpu if trial.method.name == "mod-lasso-long" else 1.0 if trial.method.name == "road-lasso" else 1.2

    (verdict,) = verdicts(synthetic("zebra", equal_time, engine=engine, cpu_of=cpu_of))
    assert ("CPU time" in verdict.reason) == equal


@pytest.mark.parametrize(("own", "extra", "equal"), [(1.0, 100.0, True), (1.2, 0.0, False)])
def test_cpu_time_is_compared_on_shared_trials(own, extra, equal):
    """ROAD has two trials more than the others, which took much longer, or nothing; the others took a second each."""

    def cpu_of(trial):
        road = trial.method.name == "road-lasso"
        return 1.0 if not road else extra if trial.seed >= 70_006 else own

    rows = [
        row
        for row in synthetic("zebra", equal_time, 8, cpu_of=cpu_of)
        if row["settings"]["method"]["name"].startswith("road") or row["settings"]["seed"] < 70_006
    ]
    (verdict,) = verdicts(rows)
    assert verdict.trials == 6
    assert ("CPU time" in verdict.reason) == equal


@pytest.mark.parametrize("missing", ["mod-lasso-long", "ksvd-lasso-long"])
def test_rows_at_equal_time_count_only_if_all_trials_of_all_methods_have_them(missing):
    rows = [
        row
        for row in synthetic("zebra", equal_time)
        if not (row["settings"]["method"]["name"] == missing and row["settings"]["seed"] == 70_005)
    ]
    (verdict,) = verdicts(rows)
    assert (verdict.outcome, verdict.trials) == ("reproduced", 6)
    assert verdict.reason.startswith("ROAD leads K-SVD")
    assert "K-SVD, fewer iterations" not in {line[0] for line in verdict.table}


def test_tables_are_judged_on_shared_trials():
    def result(trial):
        road = trial.method.name.startswith("road")
        return {"psnr": 10.0 if trial.seed >= 70_006 else 28.0 + road + (trial.seed % 2) * 0.1 * road}

    rows = [
        row
        for row in synthetic("zebra", result, 8)
        if row["settings"]["method"]["name"].startswith("road") or row["settings"]["seed"] < 70_006
    ]
    (verdict,) = verdicts(rows)
    assert verdict.trials == 6
    assert {line[0]: line[1] for line in verdict.table}["ROAD"] == "29.05"
    assert "(+1.05 ± 0.04 dB)" in verdict.reason
