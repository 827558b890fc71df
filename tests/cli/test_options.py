import re

import pytest

from roadict.road.plan import FORMULATIONS
from roadict.updates.registry import UPDATES


@pytest.mark.parametrize(
    ("command", "option", "known"),
    [
        ("learn", "--method", ["road", *UPDATES]),
        ("learn", "--formulation", FORMULATIONS),
        ("learn", "--positive", ["codes", "atoms", "both"]),
        ("encode", "--algorithm", ["omp", "mp", "sp", "cosamp", "lasso", "basis-pursuit", "half", "threshold"]),
    ],
)
def test_the_help_of_an_option_names_all_that_it_takes(roadict, command, option, known):
    described = re.search(rf"{option} <(.*?)^ +-", roadict(command, "--help").out, re.DOTALL | re.MULTILINE)[1]
    assert {*known} <= {*re.findall(r"[\w-]+", re.sub(r"-\s+", "-", described))}
