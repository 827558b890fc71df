"""Sparse coding in a given dictionary as a scikit-learn estimator."""

from copy import copy
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from roadict import checks
from roadict.coders.registry import coder_named, encode, encode_sparse, reject_positive, reject_unused
from roadict.estimators.shared import check_sparse_output, decode, validate
from roadict.tensors import like, plain

Array = NDArray[np.floating]


class SparseCoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Sparse codes of samples in a given dictionary.

    Finds ``X ≈ codes @ dictionary`` with few nonzero codes per sample. No fit is needed before ``transform``. The codes
    of a sample do not depend on the other samples.

    Parameters
    ----------
    dictionary : array of shape (n_components, n_features)
        One atom per row, of any norm. Zero atoms are never used.
    algorithm : str, default="omp"
        Greedy, by the number of atoms or the error; atoms are selected as if they had unit norm:

        - "omp": orthogonal matching pursuit; ``n_nonzero_coefs``, ``epsilon`` or both, whichever is reached first.
        - "mp": matching pursuit; the same. Once n_nonzero_coefs atoms are in use, only these are refined.
        - "sp": subspace pursuit; ``n_nonzero_coefs``.
        - "cosamp": CoSaMP; ``n_nonzero_coefs``, at most about a third of the features.

        By a penalty or a constraint:

        - "lasso": minimises ½‖x - codes @ dictionary‖² + alpha Σ|codes|; ``alpha``.
        - "half": descends on ½‖x - codes @ dictionary‖² + alpha Σ√|codes|; ``alpha`` or ``n_nonzero_coefs``.
        - "basis-pursuit": minimises Σ|codes| within the error bound; ``epsilon``.
        - "threshold": soft-thresholds the inner products with the atoms at alpha, without a fit; ``alpha``.

        scikit-learn's names "lasso_cd" and "lasso_lars" mean "lasso".
    n_nonzero_coefs : int, default=None
        Maximum number of atoms per sample. None: as many as epsilon requires; without epsilon, a tenth of the observed
        features, at least one.
    alpha : float, default=None
        Weight of the sparsity term. None: for each sample, 0.1 times the smallest weight that makes all its codes
        zero, max|x @ dictionary.T|; for "half" the weight that zeroes everything below 0.1 times that product.
    epsilon : float, default=None
        Bound on the relative error ``‖x - codes @ dictionary‖ / ‖x‖`` of every sample, below 1. None: no bound for
        "omp" and "mp", 0 for "basis-pursuit". If it cannot be met, the best fit is returned.
    positive_code : bool, default=False
        Whether codes must not be negative; for "omp", "lasso", "basis-pursuit" and "threshold". "omp" then takes atoms
        of positive correlation only, and ends where there is none. If nonnegative codes cannot meet the bound of
        "basis-pursuit", it warns and returns the nearest ones, those of nonnegative least squares.
    missing_values : None or np.nan, default=None
        np.nan: NaN marks an unobserved entry; samples are coded from the others. None: NaN is an error.
    n_jobs : int, default=None
        Threads. None: all cores. Results do not depend on it.

    Attributes
    ----------
    n_features_in_ : int
        After ``fit``.

    Notes
    -----
    Passing an argument that the algorithm does not use is an error.

    Examples
    --------
    >>> import numpy as np
    >>> from roadict import SparseCoder
    >>> dictionary = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> SparseCoder(dictionary, algorithm="omp", n_nonzero_coefs=1).transform([[3.0, 4.0], [2.0, 0.0]])
    array([[0., 0., 5.],
           [2., 0., 0.]])

    Codes that are not negative, such as abundances of materials in a spectrum:

    >>> SparseCoder(dictionary, algorithm="lasso", alpha=0.1, positive_code=True).transform([[3.0, -4.0]])
    array([[2.9, 0. , 0. ]])
    """

    def __init__(
        self,
        dictionary: ArrayLike,
        *,
        algorithm: str = "omp",
        n_nonzero_coefs: int | None = None,
        alpha: float | None = None,
        epsilon: float | None = None,
        positive_code: bool = False,
        missing_values: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.dictionary = dictionary
        self.algorithm = algorithm
        self.n_nonzero_coefs = n_nonzero_coefs
        self.alpha = alpha
        self.epsilon = epsilon
        self.positive_code = positive_code
        self.missing_values = missing_values
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Check the parameters and the data; nothing is learned.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        self._validate(X, self._checked_dictionary(), reset=True)
        return self

    @overload
    def transform(self, X: ArrayLike, *, sparse: Literal[False] = False) -> Array: ...
    @overload
    def transform(self, X: ArrayLike, *, sparse: Literal[True]) -> csr_array: ...
    def transform(self, X: ArrayLike, *, sparse: bool = False) -> Any:
        """Code samples from their observed entries.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        sparse : bool, default=False
            Whether to return a SciPy CSR array, which takes memory for nonzero codes only. Not a tensor even if X is
            one, and not for the data frames of ``set_output``.

        Returns
        -------
        array or CSR array of shape (n_samples, n_components)
            float32 for float32 data, else float64. A torch tensor on the device of X if that is one.

        Examples
        --------
        >>> import numpy as np
        >>> from roadict import SparseCoder
        >>> codes = SparseCoder(np.eye(1000), n_nonzero_coefs=1).transform(np.eye(200, 1000), sparse=True)
        >>> codes.shape, codes.nnz
        ((200, 1000), 200)
        """
        if sparse:
            check_sparse_output(self)
        codes = self._transform(X, sparse)
        return codes if sparse else like(X, codes)

    def _transform(self, X: ArrayLike, sparse: bool, first_row: int = 0) -> Any:
        """Code samples into an array or a CSR array; error messages number the rows from ``first_row`` on."""
        dictionary = self._checked_dictionary()
        return self._encode(*self._validate(X, dictionary, reset=False, first_row=first_row), dictionary, sparse)

    def _encode(self, data: Array, observed: NDArray[np.bool_] | None, dictionary: Array, sparse: bool) -> Any:
        """Code data that was checked."""
        return (encode_sparse if sparse else encode)(
            data,
            observed,
            dictionary,
            algorithm=coder_named("algorithm", self.algorithm),
            n_nonzero_coefs=self.n_nonzero_coefs,
            alpha=self.alpha,
            epsilon=self.epsilon,
            positive=self.positive_code,
            n_jobs=self.n_jobs,
        )

    def inverse_transform(self, codes: Any) -> Array:
        """Turn codes back into samples.

        Parameters
        ----------
        codes : array, or sparse array or matrix of SciPy, of shape (n_samples, n_components)

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        samples: Array = like(codes, decode(codes, self._checked_dictionary()))
        return samples

    def __sklearn_tags__(self) -> Any:
        """Declare to scikit-learn that no fit is needed, which dtypes are preserved and whether NaN is allowed."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = self.missing_values is not None
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Declare to scikit-learn that the coder is always ready."""
        return True

    @property
    def _n_features_out(self) -> int:
        return len(np.asarray(plain(self.dictionary)))

    def _checked_dictionary(self) -> Array:
        """Return the dictionary after checking all parameters."""
        algorithm = coder_named("algorithm", self.algorithm)
        if self.n_nonzero_coefs is not None:
            checks.whole_number("n_nonzero_coefs", self.n_nonzero_coefs)
        if self.alpha is not None:
            checks.real_number("alpha", self.alpha, zero=True)
        if self.epsilon is not None and checks.real_number("epsilon", self.epsilon, zero=True) >= 1:
            raise ValueError(f"epsilon={self.epsilon:g} must be below 1, the error of all-zero codes")
        checks.true_or_false("positive_code", self.positive_code)
        checks.threads("n_jobs", self.n_jobs)
        if self.positive_code:
            reject_positive(algorithm)
        reject_unused(algorithm, n_nonzero_coefs=self.n_nonzero_coefs, alpha=self.alpha, epsilon=self.epsilon)
        return checks.matrix("dictionary", self.dictionary)

    def _validate(
        self, X: ArrayLike, dictionary: Array, *, reset: bool, first_row: int = 0
    ) -> tuple[Array, NDArray[np.bool_] | None]:
        # Before a fit there are no feature names to compare with, and transform must not set any.
        ready = reset or hasattr(self, "n_features_in_")
        owner, reset = (self, reset) if ready else (copy(self), True)
        data, observed = validate(owner, X, reset=reset, min_samples=1, first_row=first_row)
        found, expected = data.shape[1], dictionary.shape[1]
        if found != expected:
            raise ValueError(
                f"X has {found} features, but SparseCoder is expecting {expected} features as input, as many as its "
                "dictionary has columns"
            )
        return data, observed
