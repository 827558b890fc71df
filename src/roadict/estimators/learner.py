"""What the estimators that learn a dictionary have in common."""

import numbers
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from roadict import checks
from roadict.checkpoints.schedule import Checkpoint
from roadict.estimators.attributes import kind_of, pack
from roadict.estimators.shared import decoded, validated
from roadict.files import models
from roadict.ranks.collectives import counts
from roadict.ranks.comm import SERIAL, Comm
from roadict.runs.result import Fit, relative_error
from roadict.tensors import is_tensor, like, plain

Array = NDArray[np.floating]

UNSAVED = ("callback", "checkpoint", "dict_init", "code_init")


class Learner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A dictionary in ``components_``: from codes to samples, the score, files, and scikit-learn's formalities.

    A subclass gives ``fit`` and ``transform``.
    """

    components_: Array
    n_components: int | None
    max_iter: int
    tol: float
    verbose: int
    n_jobs: int | None
    callback: Any
    checkpoint: Any

    def inverse_transform(self, codes: ArrayLike) -> Array:
        """Turn codes back into samples.

        Parameters
        ----------
        codes : array of shape (n_samples, n_components)

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        samples: Array = like(codes, decoded(codes, plain(self.components_)))
        return samples

    def score(self, X: ArrayLike, y: None = None) -> float:
        """Minus the relative error of ``transform`` and back over the observed entries: higher is better.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        float
        """
        check_is_fitted(self)
        data, observed = self._validated(X, reset=False)
        return -relative_error(data, observed, plain(self.transform(X)), plain(self.components_))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a plain ``.npz`` file without pickles, which ``roadict.load`` reads.

        ``callback``, ``checkpoint``, ``dict_init``, ``code_init`` and a ``random_state`` that is not an integer are
        left out. In a process group the codes are those of this rank's samples.

        Parameters
        ----------
        path : path
            Written under a temporary name first, then renamed.
        """
        check_is_fitted(self)
        parameters = self.get_params(deep=False)
        parameters |= {name: None for name in UNSAVED if name in parameters}
        seed: Any = parameters["random_state"]
        parameters["random_state"] = int(seed) if isinstance(seed, numbers.Integral) else None
        parameters = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in parameters.items()}
        models.write_model(path, kind_of(self), parameters, pack(self))

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn which dtypes are kept and whether NaN is welcome."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = getattr(self, "missing_values", None) is not None
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _validated(
        self, X: ArrayLike, *, reset: bool, min_samples: int | None = None, first_row: int = 0
    ) -> tuple[Array, NDArray[np.bool_] | None]:
        """Return data with zeros where nothing was observed, and the mask of what was (None: all)."""
        fewest = (2 if reset else 1) if min_samples is None else min_samples
        return validated(self, X, reset=reset, min_samples=fewest, first_row=first_row)

    def _keep_fit(self, fit: Fit, dtype: np.dtype[np.floating], comm: Comm = SERIAL) -> None:
        """Set the attributes that every fit gives."""
        self.components_, self.codes_ = fit.dictionary.astype(dtype), fit.codes.astype(dtype)
        self.objective_, self.error_ = fit.objective, fit.error
        self.history_, self.stop_reason_ = fit.outcome.history, fit.outcome.stop_reason
        self.n_iter_ = len(self.history_["objective"])
        used = comm.sum((self.codes_ != 0).sum(axis=0, dtype=np.float64))
        self.atom_usage_ = used / sum(counts(comm, len(self.codes_)))

    def _give_back_like(self, X: Any) -> None:
        """Make the arrays of the fit tensors, where the samples were one."""
        if is_tensor(X):
            self.components_, self.codes_ = like(X, self.components_), like(X, self.codes_)
            self.atom_usage_ = like(X, self.atom_usage_)

    def _check_run(self) -> None:
        """Check the parameters of a run that all learners have."""
        checks.whole_number("max_iter", self.max_iter)
        if self.n_components is not None:
            checks.whole_number("n_components", self.n_components)
        checks.real_number("tol", self.tol, zero=True)
        if not isinstance(self.verbose, bool):
            checks.whole_number("verbose", self.verbose, 0)
        checks.threads("n_jobs", self.n_jobs)
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback={self.callback!r} must be callable")
        if self.checkpoint is not None and not isinstance(self.checkpoint, str | os.PathLike | Checkpoint):
            raise ValueError(f"checkpoint={self.checkpoint!r} must be a folder, a Checkpoint or None")
        if isinstance(self.checkpoint, Checkpoint):
            checks.real_number("every", self.checkpoint.every, zero=True)
