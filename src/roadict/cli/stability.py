"""Stability of atoms on the command line: learn measures it, show reports it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadict.cli.console import SIGNAL_BASE, progress_bar, showing_warnings
from roadict.runs.signals import WorkStoppedError
from roadict.wording import agree, of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from roadict.estimators import ROAD, AlternatingDictionaryLearning

    Learned = ROAD | AlternatingDictionaryLearning

VERDICT = "not to be trusted"
FIT_SHARE = 0.3
"""Share of the command that the fit itself is: four fits of halves follow, whose noise level is known."""


def measure_and_save(model: "Learned", X: "NDArray[Any]", output: Path, quiet: bool) -> None:
    """Measure the stability of a model that has been saved, with a progress bar, and save it again with it."""
    from roadict.estimators import atom_stability
    from roadict.files.atomic import write_or_rescue

    stop = getattr(model.checkpoint, "stop", None)
    message = f"interrupted; {output} was written without the stability of its atoms"
    with showing_warnings(), progress_bar(quiet, "checking stability", span=(FIT_SHARE, 1.0)) as advance:

        def step(done: int, total: int, text: str) -> None:
            if stop is not None and (number := stop()):
                raise WorkStoppedError(f"{message}; continue with --resume", SIGNAL_BASE + number)
            advance(done, total, text)

        try:
            stability = atom_stability(model, X, random_state=model.random_state, progress=step)
        except KeyboardInterrupt:
            raise WorkStoppedError(message) from None
    model.atom_stability_ = stability
    write_or_rescue(model.save, output)


def stability_summary(stability: "NDArray[Any]") -> str:
    """Report in one line how many atoms are stable."""
    from roadict.metrics import STABLE

    stable = int((stability >= STABLE).sum())
    verdict = agree(stable, "is stable: it recurs", "are stable: they recur")
    return f"{of(stable, len(stability), 'atom')} {verdict} in halves of the data ({STABLE} or more)"


def stability_table(stability: "NDArray[Any]", usage: "NDArray[Any]") -> str:
    """Return a table of the atoms, counted from 1, most stable first; unstable ones are marked.

    Examples
    --------
    >>> import numpy as np
    >>> print(stability_table(np.array([0.5, 0.99]), np.array([0.105, 0.25])))
    atom  stability   usage
       2      0.990    25 %
       1      0.500  10.5 %  not to be trusted
    """
    from roadict.metrics import STABLE

    lines = ["atom  stability   usage"]
    for atom in (-stability).argsort(kind="stable"):
        mark = "" if stability[atom] >= STABLE else f"  {VERDICT}"
        lines.append(f"{atom + 1:4d}  {stability[atom]:9.3f}  {f'{100 * usage[atom]:.3g} %':>6s}{mark}")
    return "\n".join(lines)
