"""
Classify digits in a scikit-learn pipeline
==========================================

``ROAD`` is a scikit-learn transformer: use it in a pipeline, and its parameters in a grid search. Sparse codes
of the pixels are the features of a linear classifier.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from roadict import ROAD
from roadict.plotting import atoms_figure

images, labels = load_digits(return_X_y=True)
train, test, train_labels, test_labels = train_test_split(images, labels, train_size=600, random_state=0)
classify = make_pipeline(
    MaxAbsScaler(),
    ROAD(48, epsilon=0.3, tol=1e-2, n_init=1, random_state=0),
    LogisticRegression(max_iter=2000),
)
classify.fit(train / 16, train_labels)
print(f"{classify.score(test / 16, test_labels):.1%} of {len(test)} new digits are classified correctly")

# %%
# The atoms look like digits. A digit is a combination of few of them.

model = classify[1]
print(f"{(model.transform(classify[0].transform(test / 16)) != 0).sum(axis=1).mean():.1f} coefficients per digit")
figure = atoms_figure(model.components_, "48 atoms of 600 digits", model.atom_usage_)
plt.show()

# %%
# **With your own data**: try other numbers of atoms and other bounds with ``GridSearchCV(classify,
# {"road__n_components": [32, 64], "road__epsilon": [0.2, 0.3]})``. ``transform_algorithm="omp"`` with
# ``transform_n_nonzero_coefs=5`` gives every sample the same number of coefficients.
