import numpy as np
from sklearn.decomposition import DictionaryLearning

data = np.load("data.npy")
model = DictionaryLearning(
    32,
    alpha=0.05,
    fit_algorithm="cd",
    max_iter=300,
    random_state=0,
)
atoms = model.fit(data).components_
