"""Where random numbers come from."""

import operator

import numpy as np

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
