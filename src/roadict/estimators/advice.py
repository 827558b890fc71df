"""What ROAD tells users about a fit: why it has not converged, and what to do about dense codes."""

import math
from typing import Any

DENSE = 0.8
"""Nonzero codes per sample, relative to the dimensions of the data, from which codes count as hardly sparse."""


def dense_advice(model: Any) -> str:
    """Return what to do about codes with nearly as many nonzeros as the data have dimensions; "" if they are sparse."""
    dimensions, used = min(model.components_.shape), float(model.atom_usage_.sum())
    if model.exact_ or used < DENSE * dimensions:
        return ""
    remedy = "a larger epsilon" if model.formulation == "constrained" else "a larger alpha"
    other = ', formulation="lasso"' if model.formulation == "constrained" else ""
    return (
        f"samples use {used:.1f} of {dimensions} dimensions, so the codes are hardly sparse: "
        f"pass {remedy}{other} or fewer n_components"
    )


def convergence_warning(model: Any) -> str | None:
    """Return why the fit has not converged, and what to do; None: it has, or ran all iterations on request."""
    if model.stop_reason_ == "non-finite":
        return (
            f"ROAD produced non-finite numbers in iteration {model.n_iter_} and returns its start; "
            'pass rho="auto" or data of moderate range'
        )
    if model.stop_reason_ != "max_iter" or model.tol == 0:
        return None
    last = {name: column[-1] for name, column in model.history_.items()}
    bound = "" if model.epsilon_ is None else f" (bound {model.epsilon_:.2e} + 10 tol)"
    if math.isfinite(last["primal"]):
        residuals = f"primal residual {last['primal']:.2e}, dual residual {last['dual']:.2e}"
    else:
        name = "change" if math.isfinite(last.get("change", math.nan)) else "stationarity"
        residuals = f"{name} {last[name]:.2e} (bound 10 tol)"
    return (
        f"ROAD has not converged in max_iter={model._n_iterations} iterations: {residuals} (tol={model.tol:g}), data "
        f"error {last['error']:.2e}{bound}; {dense_advice(model) or 'pass a larger max_iter or tol'}"
    )
