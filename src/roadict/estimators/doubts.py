"""What speaks against a fit, as facts: programs word the remedies, which are options of one and fields of another."""

from typing import Any

from roadict.road.expected import enough_to_hide
from roadict.updates.registry import UPDATES
from roadict.wording import plural

STOPPED_EARLY = "stopped early: "
"""Start of the line about a fit that was stopped."""
SPARSE = 0.5
"""Nonzero codes per sample, relative to the dimensions of the data, from which those of a stopped fit are not sparse:
codes become sparser until a run settles."""


def too_few_samples(model: Any, noun: str = "sample") -> str:
    """Count samples, by this name, and atoms, if there are fewer samples than atoms; "": there are enough.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> too_few_samples(SimpleNamespace(components_=np.eye(8), codes_=np.eye(6, 8)))
    '6 samples for 8 atoms'
    """
    n_atoms, codes = len(model.components_), model.codes_
    if codes is None or codes.shape[0] >= n_atoms:
        return ""
    return f"{plural(codes.shape[0], noun)} for {plural(n_atoms, 'atom')}"


def starts_disagree(model: Any) -> bool:
    """Whether several starts have ended, and none found the atoms of another."""
    several = not getattr(model, "exact_", False) and getattr(model, "n_starts_", 1) > 1
    return several and model.stop_reason_ != "interrupted" and model.n_starts_agreed_ < 2


def unfinished(model: Any) -> str:
    """Say what a fit that was stopped has not found yet; "": it ran to its end, or nothing is known to be missing.

    Examples
    --------
    >>> from roadict import ROAD
    >>> from roadict.synthetic import planted
    >>> model = ROAD(16, random_state=0, callback=lambda snapshot: snapshot.iteration == 3)
    >>> model.fit(planted(200, 8, 16, sparsity=2, snr_db=20, random_state=0).data).stop_reason_ = "interrupted"
    >>> unfinished(model)
    'stopped early: noise level not found yet; codes not sparse yet, 8.0 of 16 coefficients per sample'
    """
    if model.stop_reason_ != "interrupted":
        return ""
    missing = []
    if hasattr(model, "cv_results_") and not model.n_iter_:
        missing.append("number of atoms not chosen yet")
    if _lacks_noise(model):
        missing.append("noise level not found yet")
    used, (n_atoms, n_features) = float(model.atom_usage_.sum()), model.components_.shape
    if not _codes_are_final(model) and used >= SPARSE * min(n_atoms, n_features):
        missing.append(f"codes not sparse yet, {used:.1f} of {plural(n_atoms, 'coefficient')} per sample")
    return f"{STOPPED_EARLY}{'; '.join(missing)}" if missing else ""


def _codes_are_final(model: Any) -> bool:
    """Whether codes cannot become sparser: of exact data, or with a given number of coefficients."""
    update = getattr(model, "update", None)
    return getattr(model, "exact_", False) or (update is not None and UPDATES[update].penalty is None)


def _lacks_noise(model: Any) -> bool:
    """Whether the noise level was to be found in the data, and has not been; False if only the data could tell."""
    if getattr(model, "exact_", True) or model.epsilon_path_ is not None or model.missing_values is not None:
        return False
    if not model._parameters().noise_is_unknown:
        return False
    n_atoms, n_features = model.components_.shape
    return model.codes_ is None or enough_to_hide(model.codes_.shape[0], n_features, n_atoms)
