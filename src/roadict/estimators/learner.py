"""Base class of the estimators that learn a dictionary."""

import numbers
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Literal, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from roadict import checks
from roadict.checkpoints.schedule import Checkpoint
from roadict.coders.registry import CODER_PARAMETERS, coder_named
from roadict.estimators.attributes import kind_of, pack
from roadict.estimators.shared import check_sparse_output, decode, validate
from roadict.estimators.sparse_coder import SparseCoder
from roadict.files import models
from roadict.ranks.collectives import total
from roadict.ranks.comm import SERIAL, Comm
from roadict.runs.driving import Fitting, drive, observe
from roadict.runs.history import Finished, History
from roadict.runs.result import Fit, relative_error
from roadict.runs.snapshot import Snapshot
from roadict.tensors import is_tensor, like, plain

Array = NDArray[np.floating]

UNSAVED = ("callback", "checkpoint", "dict_init", "code_init")


class Coding(NamedTuple):
    """Coding parameters of a model: those given, and the weight chosen by the fit if none was."""

    algorithm: str
    n_nonzero_coefs: int | None
    alpha: float | None
    chosen_alpha: float | None


class Learner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Estimator with a learned dictionary in ``components_``: coding, scoring, saving, scikit-learn's protocol.

    Subclasses implement ``_fitting``, a generator of the events listed in ``roadict.runs.driving``.
    """

    components_: Array
    codes_: Any
    """Array, CSR array, or None if the fit did not store codes."""
    atom_stability_: NDArray[np.float64]
    n_components: int | None
    max_iter: Any
    """A whole number; for ``ROAD`` also None."""
    tol: float
    verbose: int
    n_jobs: int | None
    callback: Any
    checkpoint: Any

    def iter_fit(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Iterator[Snapshot]:
        """Fit like ``fit`` and yield a snapshot after every iteration; the model is fitted once all are consumed.

        The consuming loop replaces ``callback`` and ``verbose``, and may call ``snapshot.stop()``. Leaving it early
        leaves the model unchanged. Copy from a snapshot what should outlast its iteration.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        sample_weight : float or array of shape (n_samples,), default=None
            As for ``fit``, if that has it.

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
        with closing(self._guarded(self._fitting(X, sample_weight, watched=True))) as fitting:
            for event in fitting:
                if isinstance(event, Snapshot):
                    yield event

    def _fit(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit, calling the callback and printing progress on rank 0."""
        verbose = self.verbose if self._comm().rank == 0 else 0
        watched = self.callback is not None or bool(self.verbose)
        drive(observe(self._guarded(self._fitting(X, sample_weight, watched=watched)), self.callback, verbose))
        return self

    def _fitting(self, X: ArrayLike, sample_weight: ArrayLike | None = None, *, watched: bool) -> Fitting[None]:
        """Fit step by step; implemented by subclasses."""
        raise NotImplementedError

    def _guarded(self, fitting: Fitting[None]) -> Fitting[None]:
        """Pass on the events of a fit; one that does not reach its end leaves the model as it was."""
        with self._unchanged_unless_finished():
            yield from fitting

    @contextmanager
    def _unchanged_unless_finished(self) -> Iterator[None]:
        """Restore the fitted attributes if the block does not reach its end."""
        before = self._fitted_attributes()
        finished = False
        try:
            yield
            finished = True
        finally:
            if not finished:
                for name in self._fitted_attributes():
                    del self.__dict__[name]
                self.__dict__.update(before)

    def _fitted_attributes(self) -> dict[str, Any]:
        """Attributes set by a fit, by name."""
        return {name: value for name, value in vars(self).items() if name.endswith("_")}

    def _comm(self) -> Comm:
        """The ranks of a fit."""
        return SERIAL

    @overload
    def transform(self, X: ArrayLike, *, sparse: Literal[False] = False) -> Array: ...
    @overload
    def transform(self, X: ArrayLike, *, sparse: Literal[True]) -> csr_array: ...
    def transform(self, X: ArrayLike, *, sparse: bool = False) -> Any:
        """Code samples in the learned dictionary from their observed entries, as ``sparse_coder()`` does.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        sparse : bool, default=False
            Whether to return a SciPy CSR array, which takes memory for nonzero codes only. Not a tensor even if X is
            one, and not for the data frames of ``set_output``.

        Returns
        -------
        array or CSR array of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        self._check_parameters()
        if sparse:
            check_sparse_output(self)
        data, observed = self._validate(X, reset=False)
        codes = self.sparse_coder()._encode(data, observed, plain(self.components_).astype(data.dtype), sparse)
        return codes if sparse else like(X, codes)

    def sparse_coder(
        self,
        algorithm: str | None = None,
        *,
        n_nonzero_coefs: int | None = None,
        alpha: float | None = None,
        epsilon: float | None = None,
    ) -> SparseCoder:
        """Return the coder of ``transform``, or another one for the learned dictionary.

        Parameters
        ----------
        algorithm : str, default=None
            As for ``SparseCoder``. None: the model's own.
        n_nonzero_coefs, alpha, epsilon : default=None
            As for ``SparseCoder``. All None: the model's own values, where the algorithm uses them.

        Returns
        -------
        SparseCoder
        """
        check_is_fitted(self)
        own = self._transform_coding()
        name = coder_named("algorithm", own.algorithm if algorithm is None else algorithm)
        takes = CODER_PARAMETERS[name]
        if n_nonzero_coefs is None and alpha is None and epsilon is None:
            n_nonzero_coefs = own.n_nonzero_coefs if "n_nonzero_coefs" in takes else None
            if "alpha" in takes:  # the weight of "half" has different units and its own default
                alpha = own.chosen_alpha if own.alpha is None and name != "half" else own.alpha
        return SparseCoder(
            self.components_,
            algorithm=name,
            n_nonzero_coefs=n_nonzero_coefs,
            alpha=alpha,
            epsilon=epsilon,
            positive_code=getattr(self, "positive_code", False),
            missing_values=getattr(self, "missing_values", None),
            n_jobs=self.n_jobs,
        )

    def _transform_coding(self) -> "Coding":
        """Coding parameters of ``transform``; implemented by subclasses."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Raise ValueError for parameters out of bounds; implemented by subclasses."""
        raise NotImplementedError

    def inverse_transform(self, codes: Any) -> Array:
        """Turn codes back into samples.

        Parameters
        ----------
        codes : array, or sparse array or matrix of SciPy, of shape (n_samples, n_components)

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        samples: Array = like(codes, decode(codes, plain(self.components_)))
        return samples

    def score(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> float:
        """Minus the relative reconstruction error of ``transform`` over the observed entries: higher is better.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : ignored
        sample_weight : float or array of shape (n_samples,), default=None
            Weights of the squared errors and norms of the samples.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        data, observed = self._validate(X, reset=False)
        codes, weights = plain(self.transform(X)), checks.sample_weights(sample_weight, len(data), data.dtype)
        if weights is not None:
            roots = np.sqrt(weights)[:, None]
            data, codes = data * roots, codes * roots
        return -relative_error(data, observed, codes, plain(self.components_))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model to a plain ``.npz`` file without pickles, for ``roadict.load``.

        ``callback``, ``checkpoint``, ``dict_init``, ``code_init`` and a non-integer ``random_state`` are not saved. In
        a process group the codes are those of this rank's samples. Sparse codes stay sparse.

        Parameters
        ----------
        path : path
            Written to a temporary file, then renamed.
        """
        check_is_fitted(self)
        parameters = self.get_params(deep=False)
        parameters |= {name: None for name in UNSAVED if name in parameters}
        if parameters.get("fixed_atoms") is not None:
            parameters["fixed_atoms"] = checks.matrix("fixed_atoms", parameters["fixed_atoms"])
        seed: Any = parameters["random_state"]
        parameters["random_state"] = int(seed) if isinstance(seed, numbers.Integral) else None
        parameters = {k: _plain(v) for k, v in parameters.items()}
        models.write_model(path, kind_of(self), parameters, pack(self))

    def __sklearn_tags__(self) -> Any:
        """Declare to scikit-learn which dtypes are preserved and whether NaN is allowed."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = getattr(self, "missing_values", None) is not None
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _validate(
        self, X: ArrayLike, *, reset: bool, min_samples: int | None = None, first_row: int = 0
    ) -> tuple[Array, NDArray[np.bool_] | None]:
        """Return the data, zero at unobserved entries, and the mask of observed entries (None: all)."""
        if min_samples is None:
            min_samples = 2 if reset else 1
        return validate(self, X, reset=reset, min_samples=min_samples, first_row=first_row)

    def _n_atoms(self, n_features: int) -> int:
        """Number of atoms for data of so many features."""
        return 2 * n_features if self.n_components is None else self.n_components

    def _set_fit(
        self, fit: Fit, dtype: np.dtype[np.floating], comm: Comm = SERIAL, weights: Array | None = None
    ) -> None:
        """Set the attributes common to all learners; ``weights`` are those of the samples of the fit."""
        self.__dict__.pop("atom_stability_", None)  # that of the atoms of an earlier fit
        self.components_, self.codes_ = fit.dictionary.astype(dtype), fit.codes.astype(dtype)
        self.objective_, self.error_ = fit.objective, fit.error
        self.history_ = History(fit.outcome.history, Finished(fit.objective, fit.error, fit.exact))
        self.stop_reason_ = fit.outcome.stop_reason
        self.n_iter_ = len(self.history_["objective"])
        if fit.usage is not None:
            self.atom_usage_ = fit.usage
            return
        each = np.ones(len(self.codes_)) if weights is None else weights
        used = comm.sum(each @ (self.codes_ != 0))
        self.atom_usage_ = used / total(comm, float(each.sum()))

    def _convert_outputs_like(self, X: Any) -> None:
        """Convert the arrays of the fit to tensors if X is one."""
        if is_tensor(X):
            self.components_, self.atom_usage_ = like(X, self.components_), like(X, self.atom_usage_)
            if isinstance(self.codes_, np.ndarray):  # neither CSR nor None
                self.codes_ = like(X, self.codes_)

    @property
    def _n_iterations(self) -> Any:
        """Maximum number of iterations of a run."""
        return self.max_iter

    def _check_run(self) -> None:
        """Check the parameters common to all learners."""
        checks.whole_number("max_iter", self._n_iterations)
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


def _plain(value: Any) -> Any:
    """Return arrays and ranges as lists."""
    return value.tolist() if isinstance(value, np.ndarray) else list(value) if isinstance(value, range) else value
