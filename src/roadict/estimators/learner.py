"""What the estimators that learn a dictionary have in common."""

import numbers
import os
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from roadict import checks
from roadict.checkpoints.schedule import Checkpoint
from roadict.coders.registry import TAKES, encode
from roadict.estimators.attributes import kind_of, pack
from roadict.estimators.shared import decoded, validated
from roadict.estimators.sparse_coder import SparseCoder
from roadict.files import models
from roadict.ranks.collectives import counts
from roadict.ranks.comm import SERIAL, Comm
from roadict.runs.driving import Fitting, drive, observed
from roadict.runs.history import Finished, History
from roadict.runs.result import Fit, relative_error
from roadict.runs.snapshot import Snapshot
from roadict.tensors import is_tensor, like, plain

Array = NDArray[np.floating]

UNSAVED = ("callback", "checkpoint", "dict_init", "code_init")


class Coding(NamedTuple):
    """What a model codes with: the parameters that it was given, and the weight that it chose where there is none."""

    algorithm: str
    n_nonzero_coefs: int | None
    alpha: float | None
    chosen_alpha: float | None


class Learner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A dictionary in ``components_``: from codes to samples, the score, files, and scikit-learn's formalities.

    A subclass gives ``fit`` by ``_fitting``, a generator of the events that ``roadict.runs.driving`` names.
    """

    components_: Array
    n_components: int | None
    max_iter: int
    tol: float
    verbose: int
    n_jobs: int | None
    callback: Any
    checkpoint: Any

    def iter_fit(self, X: ArrayLike) -> Iterator[Snapshot]:
        """Fit as ``fit`` does, and yield a snapshot after every iteration; the model is fitted once all are taken.

        The loop that consumes it takes the place of ``callback`` and ``verbose``, and may call ``snapshot.stop()``.
        Leaving the loop early leaves the model as it was.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Yields
        ------
        Snapshot

        Examples
        --------
        >>> from roadict import AlternatingDictionaryLearning
        >>> from roadict.synthetic import planted
        >>> model = AlternatingDictionaryLearning(8, n_nonzero_coefs=2, max_iter=3, tol=0, random_state=0)
        >>> errors = [snapshot.error for snapshot in model.iter_fit(planted(60, 6, 8, sparsity=2, random_state=0).data)]
        >>> len(errors), model.stop_reason_
        (3, 'max_iter')
        """
        with closing(self._fitting(X, watched=True)) as fitting:
            for event in fitting:
                if isinstance(event, Snapshot):
                    yield event

    def _fit(self, X: ArrayLike) -> Self:
        """Fit, with what the callback and the user want to see."""
        shown = self.verbose if self._comm().rank == 0 else 0
        watched = self.callback is not None or bool(self.verbose)
        drive(observed(self._fitting(X, watched=watched), self.callback, shown))
        return self

    def _fitting(self, X: ArrayLike, *, watched: bool) -> Fitting[None]:
        """Fit step by step; a subclass gives it."""
        raise NotImplementedError

    def _comm(self) -> Comm:
        """The ranks of a fit."""
        return SERIAL

    def transform(self, X: ArrayLike) -> Array:
        """Code samples in the learned dictionary, by their observed entries, as ``sparse_coder()`` does.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        self._check_parameters()
        data, observed = self._validated(X, reset=False)
        coder = self.sparse_coder()
        codes = encode(
            data,
            observed,
            plain(self.components_).astype(data.dtype),
            algorithm=coder.algorithm,
            n_nonzero_coefs=coder.n_nonzero_coefs,
            alpha=coder.alpha,
            n_jobs=self.n_jobs,
        )
        given_back: Array = like(X, codes)
        return given_back

    def sparse_coder(
        self,
        algorithm: str | None = None,
        *,
        n_nonzero_coefs: int | None = None,
        alpha: float | None = None,
        epsilon: float | None = None,
    ) -> SparseCoder:
        """Return the coder that ``transform`` uses, or another one for the learned dictionary.

        Parameters
        ----------
        algorithm : str, default=None
            As for ``SparseCoder``. None: the model's own.
        n_nonzero_coefs, alpha, epsilon : default=None
            As for ``SparseCoder``. All None: what the model was given or has chosen, where the algorithm uses it.

        Returns
        -------
        SparseCoder
        """
        check_is_fitted(self)
        own = self._own_coding()
        name = own.algorithm if algorithm is None else algorithm
        takes = TAKES.get(name, ())
        if n_nonzero_coefs is None and alpha is None and epsilon is None:
            n_nonzero_coefs = own.n_nonzero_coefs if "n_nonzero_coefs" in takes else None
            if "alpha" in takes:  # the weight of "half" has other units, and its own default
                alpha = own.chosen_alpha if own.alpha is None and name != "half" else own.alpha
        return SparseCoder(
            self.components_,
            algorithm=name,
            n_nonzero_coefs=n_nonzero_coefs,
            alpha=alpha,
            epsilon=epsilon,
            missing_values=getattr(self, "missing_values", None),
            n_jobs=self.n_jobs,
        )

    def _own_coding(self) -> "Coding":
        """What ``transform`` codes with; a subclass gives it."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Refuse parameters out of bounds; a subclass gives it."""
        raise NotImplementedError

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

    def _set_fit(self, fit: Fit, dtype: np.dtype[np.floating], comm: Comm = SERIAL) -> None:
        """Set the attributes that every fit gives."""
        self.components_, self.codes_ = fit.dictionary.astype(dtype), fit.codes.astype(dtype)
        self.objective_, self.error_ = fit.objective, fit.error
        self.history_ = History(fit.outcome.history, Finished(fit.objective, fit.error, fit.exact))
        self.stop_reason_ = fit.outcome.stop_reason
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
