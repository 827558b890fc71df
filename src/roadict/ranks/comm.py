"""Communicators: ranks, and sums over all ranks in a fixed order.

A run that is split over samples needs sums only: of Gram matrices, norms and votes. ``Serial`` is a run in one process;
``TorchComm`` uses torch.distributed, which is imported on first use.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import numpy as np

from roadict.extras import require

Summand = TypeVar("Summand")
"""A NumPy array or a torch tensor."""

MAX_ALL_GATHER_SIZE = 4096
"""Size up to which every rank receives all summands: one exchange instead of two."""
MAX_ALL_GATHER_RANKS = 2
"""Number of ranks up to which this causes no extra traffic either."""


class Comm(Protocol):
    """How the ranks of a run communicate. All must call ``sum`` equally often and in the same order."""

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""

    @property
    def size(self) -> int:
        """Number of processes."""

    def sum(self, array: Summand) -> Summand:
        """Return the sum of all ranks' arrays, bitwise identical on every rank and in every run of this size.

        A NumPy array gives a NumPy array, a tensor a tensor on its device. Shapes and dtypes must agree. The argument
        is not changed, but may itself be returned.
        """


class Serial:
    """One process."""

    rank = 0
    size = 1

    def sum(self, array: Summand) -> Summand:
        """Return the array."""
        return array


SERIAL = Serial()


class RankLostError(ConnectionError):
    """Another rank no longer responds."""


class TorchComm:
    """The ranks of the initialised torch.distributed process group (gloo, NCCL or both).

    Parameters
    ----------
    store : torch.distributed.Store or None
        The group's rendezvous store.
    """

    def __init__(self, store: Any = None) -> None:
        from torch import distributed

        self._store = store
        self.rank = int(distributed.get_rank())
        self.size = int(distributed.get_world_size())
        self._devices = _devices(str(distributed.get_backend_config()))

    def sum(self, array: Summand) -> Summand:
        """Sum in rank order; see ``Comm``."""
        import torch

        given: Any = array
        tensor = torch.from_numpy(np.array(given, order="C")) if isinstance(given, np.ndarray) else given
        home = tensor.device
        if home.type not in self._devices:
            tensor = tensor.to(self._devices[0])
        total = self._sum(tensor.reshape(-1)).reshape(tensor.shape).to(home)
        result: Any = total.numpy() if isinstance(given, np.ndarray) else total
        return result  # type: ignore[no-any-return]

    def is_first_to_report(self, text: str) -> bool:
        """Whether no other rank has reported this yet. Unlike ``sum``, any rank may call it at any time."""
        try:
            return self._store is None or int(self._store.add(f"reported: {text}", 1)) == 1
        except RuntimeError:  # the store is gone: better to report twice than never
            return True

    def _sum(self, flat: Any) -> Any:
        """Every rank sums one share of the numbers and sends it to the others: the traffic of an all-reduce.

        Only copies are exchanged, and sums are computed here in rank order: no library's algorithm can reorder them.
        """
        from torch import distributed

        if self.size <= MAX_ALL_GATHER_RANKS or flat.numel() <= MAX_ALL_GATHER_SIZE:
            parts = flat.new_empty((self.size, flat.numel()))
            self._exchange(lambda: distributed.all_gather(list(parts), flat))
            return _sum_in_order(parts)
        share = -(-flat.numel() // self.size)
        padded = flat.new_zeros(self.size * share)
        padded[: flat.numel()] = flat
        parts = flat.new_empty((self.size, share))
        self._exchange(lambda: distributed.all_to_all_single(parts.view(-1), padded))
        sums, own = flat.new_empty((self.size, share)), _sum_in_order(parts)
        self._exchange(lambda: distributed.all_gather(list(sums), own))
        return sums.view(-1)[: flat.numel()]

    def _exchange(self, collective: Callable[[], Any]) -> None:
        """Run a collective. Local failures, such as a lack of memory, are not blamed on other ranks."""
        import torch

        try:
            collective()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as failure:
            reason = " ".join(str(failure).split())
            raise RankLostError(
                f"rank {self.rank} of {self.size} has lost the others ({reason}); start the run again, resuming "
                "from its checkpoint if there is one"
            ) from failure


def _sum_in_order(parts: Any) -> Any:
    total = parts[0].clone()
    for part in parts[1:]:
        total += part
    return total


def _devices(config: str) -> list[str]:
    """Device types that a backend such as "cpu:gloo,cuda:nccl" supports directly.

    Examples
    --------
    >>> _devices("cpu:gloo,cuda:nccl"), _devices("cpu:gloo,cuda:gloo"), _devices("cuda:nccl")
    (['cpu', 'cuda'], ['cpu'], ['cuda'])
    """
    pairs = [entry.split(":") for entry in config.split(",")]
    return [device for device, backend in pairs if device == "cpu" or backend != "gloo"]


_ALONE: ContextVar[bool] = ContextVar("alone", default=False)


@contextmanager
def alone() -> Iterator[None]:
    """Run fits in this process only, even inside a process group; affects this thread or coroutine.

    Examples
    --------
    >>> with alone():
    ...     current().size
    1
    """
    token = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(token)


def current() -> Comm:
    """Return the torch.distributed process group if there is one, else a group of one."""
    module: Any = sys.modules.get("torch.distributed")  # not imported, not initialised
    if _ALONE.get() or module is None or not module.is_available() or not module.is_initialized():
        return SERIAL
    return TorchComm()


def is_first_to_report(comm: Comm, text: str) -> bool:
    """Whether no other rank has reported this yet; any rank may call it at any time."""
    return not isinstance(comm, TorchComm) or comm.is_first_to_report(text)


def started_by_torchrun() -> bool:
    """Whether the environment defines a rank and the address of the others."""
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


def is_restart(comm: Comm) -> bool:
    """Whether torchrun has restarted this group, after one of its processes died.

    Of several torchruns one may be new and count from 0: a restart seen by any rank counts for all.
    """
    return int(comm.sum(np.array([_restarts()], np.int64))[0]) > 0


def _restarts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def placement(engine: str, n_gpus: int, local_rank: int, local_size: int) -> tuple[int | None, str]:
    """Choose the GPU of a rank, None for none, and the communication backend.

    Parameters
    ----------
    engine : str
        One of ``roadict.engines.registry.ENGINES``.
    n_gpus : int
        On this machine.
    local_rank, local_size : int
        Index of this rank among those on this machine, and their number.

    Examples
    --------
    >>> placement("cuda", 8, 3, 8), placement("numba", 8, 3, 8)
    ((3, 'cpu:gloo,cuda:nccl'), (None, 'gloo'))
    """
    if engine not in ("auto", "cuda") or n_gpus == 0:
        return None, "gloo"
    # NCCL allows one rank per GPU; ranks that share a GPU sum on the CPU.
    return local_rank % n_gpus, "cpu:gloo,cuda:nccl" if local_size <= n_gpus else "gloo"


@contextmanager
def process_group(timeout: float, engine: str) -> Iterator[Comm]:
    """Join the other processes that torchrun started; without torchrun, a group of one.

    Parameters
    ----------
    timeout : float
        Seconds without a response after which another rank is considered lost.
    engine : str
        If the run may need a GPU, this rank is assigned one; see ``placement``.
    """
    if not started_by_torchrun():
        yield SERIAL
        return
    require("a run of several processes", "torch", extra="distributed")
    import torch

    distributed: Any = torch.distributed  # its types leave out what it documents
    local_rank, local_size = (int(os.environ.get(name, "0")) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    gpu, backend = placement(engine, torch.cuda.device_count(), local_rank, local_size)
    if gpu is not None:
        torch.cuda.set_device(gpu)
    wait = timedelta(seconds=timeout)
    try:
        store, rank, size = next(distributed.rendezvous("env://", timeout=wait))
        store.set_timeout(wait)
        if os.environ.get("GROUP_WORLD_SIZE") == "1":
            # One torchrun uses one store for all its restarts, which still holds the addresses of dead processes.
            # (Several torchruns agree on a new store each time, but may not agree on the number of restarts.)
            store = distributed.PrefixStore(f"restart-{_restarts()}", store)
        distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=wait)
    except RuntimeError as failure:
        raise RankLostError(f"the processes did not find each other ({' '.join(str(failure).split())})") from failure
    try:
        yield TorchComm(store)
    finally:
        distributed.destroy_process_group()


def local_threads(n_jobs: int | None, comm: Comm) -> int | None:
    """Number of threads for one rank: by default its share of this machine's cores."""
    if n_jobs is not None or comm.size == 1:
        return n_jobs
    import joblib

    return max(1, int(joblib.cpu_count()) // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
