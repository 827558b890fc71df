"""
Watch a run and stop it
=======================

A callback is called after every iteration. It may plot, log or stop the run: returning ``True`` ends it, and the
model is ready to use.
"""

import matplotlib.pyplot as plt
import numpy as np

from roadict import ROAD
from roadict.metrics import dictionary_error
from roadict.synthetic import planted

truth = planted(400, 16, 24, sparsity=3, random_state=0)
errors, objectives = [], []


def watch(snapshot):
    """Record the run, and stop once the objective has hardly changed over 200 iterations."""
    errors.append(dictionary_error(snapshot.dictionary, truth.dictionary))
    objectives.append(snapshot.objective)
    recent = objectives[-200:]
    return len(recent) == 200 and max(recent) - min(recent) < 2e-3 * recent[-1]


model = ROAD(24, rho=10, n_init=1, callback=watch, random_state=0).fit(truth.data)
print(f"{model.stop_reason_} after {model.n_iter_} of at most {model.max_iter} iterations")

# %%
# The atoms are found long before the objective has converged to its last digit.

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
distance = np.abs(np.array(objectives[:-1]) / objectives[-1] - 1)
axes.semilogy(distance, label="relative distance of the objective from its last value")
axes.semilogy(errors, label="recovery error")
axes.set(xlabel="iteration", ylim=(1e-5, None))
axes.legend()
plt.show()

# %%
# **With your own data**: a snapshot has ``start``, ``n_starts``, ``iteration``, ``max_iter``, ``objective``,
# ``primal``, ``dual``, ``error``, ``rho``, ``seconds``, ``dictionary`` and ``codes``.
# ``return snapshot.seconds > 60`` is a budget of a minute for every start. ``for snapshot in model.iter_fit(X)``
# is the same without a callback. ``verbose=1`` prints a progress line. ``model.history_`` records the run;
# ``to_frame()`` makes it a table.
