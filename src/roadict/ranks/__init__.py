"""Distributed fits: one fit on all ranks of a torch.distributed process group.

``current()`` returns the group that a fit runs on, ``alone()`` restricts fits to this process, ``gathered(comm, rows)``
returns the rows of all ranks.
"""

from roadict.ranks.collectives import gathered
from roadict.ranks.comm import alone, current

__all__ = ["alone", "current", "gathered"]
