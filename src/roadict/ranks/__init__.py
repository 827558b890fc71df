"""Several processes or machines: one fit of all ranks of a process group of torch.distributed.

``current()`` is the group that a fit belongs to, ``alone()`` makes fits of this process only, ``gathered(comm, rows)``
returns the rows of all ranks.
"""

from roadict.ranks.collectives import gathered
from roadict.ranks.comm import alone, current

__all__ = ["alone", "current", "gathered"]
