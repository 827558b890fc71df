"""Seeds and independent random streams."""

import operator

import numpy as np

PLANTED = int.from_bytes(b"road", "big")
START, NOISE_MASK, NOISE_START, NUMBER_MASK, NUMBER_START, STABILITY, PASSES = 1, 2, 3, 4, 5, 6, 7
DICTIONARY, PREDICTOR, DENOISING, INPAINTING, TRIAL_START, TRIAL_DRAW, TRIAL_RESTARTS = 11, 12, 13, 14, 21, 22, 23
"""Keys of ``streams``, one per purpose: data and start of the same seed are independent."""

RandomStateLike = int | np.random.Generator | np.random.RandomState | np.random.SeedSequence | None


def seed_sequence(random_state: RandomStateLike) -> np.random.SeedSequence:
    """Turn any kind of ``random_state`` into a SeedSequence; a Generator or RandomState is advanced.

    Examples
    --------
    >>> seed_sequence(7).entropy
    7
    """
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(0, 2**32, size=4, dtype=np.uint32).tolist())
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(random_state.randint(0, 2**32, size=4, dtype=np.uint32).tolist())
    if random_state is None:
        return np.random.SeedSequence()
    try:
        seed = operator.index(random_state)
    except TypeError:
        seed = -1
    if seed < 0:
        raise ValueError(
            f"random_state={random_state!r} must be None, an integer of at least 0, or a numpy Generator, "
            f"RandomState or SeedSequence; pass for example random_state=0"
        )
    return np.random.SeedSequence(seed)


def streams(random_state: RandomStateLike, key: int, number: int) -> list[np.random.Generator]:
    """Return independent generators for one purpose, given by its key; other keys give other streams.

    A SeedSequence is not changed, so that it gives the same streams again.

    Examples
    --------
    >>> first, second = streams(7, 1, 2)
    >>> bool(first.random() == streams(7, 1, 2)[0].random()), bool(first.random() == streams(7, 2, 2)[0].random())
    (True, False)
    """
    root = seed_sequence(random_state)
    return [
        np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, key, index)))
        for index in range(number)
    ]
