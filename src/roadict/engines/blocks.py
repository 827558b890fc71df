"""Look up an engine's steps for the blocks of a formulation."""

from collections.abc import Mapping
from typing import TypeVar

from roadict.formulation import Formulation, RankOne, Sparse

Shrink = TypeVar("Shrink")
Project = TypeVar("Project")


def steps_of(
    formulation: Formulation, sparse: Mapping[Sparse, Shrink], rank_one: Mapping[RankOne, Project], engine: str
) -> tuple[Shrink, Project]:
    """Return an engine's steps of the sparse and the rank-one blocks; raises ValueError if it has none."""
    for name, block, known in (("sparse", formulation.sparse, sparse), ("rank_one", formulation.rank_one, rank_one)):
        if block not in known:
            raise ValueError(
                f'engine="{engine}" has no step for {name}="{block}", only for {", ".join(known)}; '
                'use engine="reference"'
            )
    return sparse[formulation.sparse], rank_one[formulation.rank_one]
