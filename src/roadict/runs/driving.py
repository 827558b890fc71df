"""Drive one or many fits to completion, and pass their events to observers.

A fit is a generator that returns its result. It yields a Snapshot after an iteration, a Fit after each start, None when
it has submitted work to a batch, and a Future when it waits for another process.
"""

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, closing
from typing import Any, TypeVar

from roadict.progress.compiling import heard_by
from roadict.progress.terminal import ProgressLine
from roadict.runs.result import Fit, summary
from roadict.runs.snapshot import Callback, Snapshot

Result = TypeVar("Result")
Event = Snapshot | Fit | Future[Any] | None
Fitting = Generator[Event, None, Result]


def observe(fitting: Fitting[Result], callback: Callback | None = None, verbose: int = 0) -> Fitting[Result]:
    """Report the events of a fit to a callback and a progress line, and yield them on.

    Parameters
    ----------
    fitting : generator
    callback : callable or None
        Called with every snapshot; returning a true value ends the run.
    verbose : int
        1: a progress line of the whole fit, and a summary of every start. 2: a line per iteration.
    """
    # Before the first event, to hear of kernels being compiled; other types are refused by the fit.
    line = ProgressLine(every_iteration=verbose > 1) if verbose and isinstance(verbose, int) else None

    def see(event: Event) -> None:
        if isinstance(event, Snapshot):
            if line is not None:
                line(event)
            answer = None if callback is None else callback(event)
            if is_true(answer):
                event.stop()
        elif isinstance(event, Fit) and line is not None:
            line.say(summary(event))

    with ExitStack() as ending:
        if line is not None:
            ending.callback(line.close)
            ending.enter_context(heard_by(line.compiling))
        return (yield from tapped(fitting, see))


def tapped(fitting: Fitting[Result], see: Callable[[Event], None]) -> Fitting[Result]:
    """Call a function with every event of a fit, then pass the event on."""
    with closing(fitting):
        while True:
            try:
                event = next(fitting)
            except StopIteration as end:
                result: Result = end.value
                return result
            see(event)
            yield event


def is_true(answer: Any) -> bool:
    """Whether the answer of a callback ends a run; an array of several entries, neither true nor false, does not.

    Examples
    --------
    >>> import numpy as np
    >>> is_true(1), is_true(np.array([True])), is_true(None), is_true(np.ones(2))
    (True, True, False, False)
    """
    try:
        return bool(answer)
    except (ValueError, RuntimeError):  # of NumPy and pandas; of torch
        return False


def drive(fitting: Generator[Any, None, Result]) -> Result:
    """Drive a fit, or a single run, to completion and return its result."""
    with closing(fitting):
        while True:
            try:
                next(fitting)
            except StopIteration as end:
                result: Result = end.value
                return result


def drive_all(fittings: Iterable[Fitting[Any]]) -> None:
    """Drive fits concurrently, each in turn until it waits for a shared batch or another process.

    The first error is raised after all have ended.
    """
    errors: list[Exception] = []
    ready = list(fittings)
    waiting: dict[Future[Any], Fitting[Any]] = {}
    while ready or waiting:
        done = [future for future in waiting if future.done()] if ready else wait(waiting, None, FIRST_COMPLETED).done
        ready += [waiting.pop(future) for future in done]
        for fitting in tuple(ready):
            try:
                event = _advance_until_waiting(fitting)
            except StopIteration:
                ready.remove(fitting)
            except Exception as error:
                errors.append(error)
                ready.remove(fitting)
            else:
                if isinstance(event, Future):
                    waiting[event] = fitting
                    ready.remove(fitting)
    if errors:
        raise errors[0]


def _advance_until_waiting(fitting: Fitting[Any]) -> Future[Any] | None:
    """Advance a fit to the next event it waits for; raises StopIteration at its end."""
    while True:
        event = next(fitting)
        if event is None or isinstance(event, Future):
            return event
