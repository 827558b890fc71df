import pytest

from roadict import ROAD
from roadict.synthetic import planted


@pytest.fixture(scope="package")
def truth():
    return planted(400, 16, 32, sparsity=3, random_state=0)


@pytest.fixture(scope="package")
def model(truth):
    return ROAD(32, random_state=0).fit(truth.data)


@pytest.fixture
def small():
    return planted(60, 8, 12, sparsity=2, random_state=3).data


def quick(**parameters):
    return ROAD(**({"n_components": 12, "max_iter": 40, "tol": 0, "random_state": 0} | parameters))
