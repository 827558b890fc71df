import numpy as np
import pytest

from roadict import seeds


def test_every_purpose_has_random_numbers_of_its_own():
    keys = [value for name, value in vars(seeds).items() if name.isupper()]
    assert len(keys) > 5
    first = [rng.random() for key in keys for rng in seeds.streams(0, key, 3)]
    assert len(set(first)) == 3 * len(keys)


def test_more_streams_leave_the_first_as_they_are():
    few, many = seeds.streams(5, seeds.START, 2), seeds.streams(5, seeds.START, 9)
    assert [rng.random() for rng in few] == [rng.random() for rng in many[:2]]


def test_integers_of_numpy_and_large_ones_are_seeds():
    assert seeds.seed_sequence(np.int64(3)).entropy == seeds.seed_sequence(3).entropy == 3
    assert seeds.seed_sequence(2**200).entropy == 2**200


@pytest.mark.parametrize("value", [-1, 1.0, "seed", [1], np.nan])
def test_other_seeds_are_refused(value):
    with pytest.raises(ValueError, match=r"random_state=.* must be None, an integer of at least 0"):
        seeds.seed_sequence(value)
