import numpy as np
from dictlearn import DictionaryLearning

data = np.load("data.npy")
model = DictionaryLearning(
    32,
    fit_algorithm="uaksvd",
    n_nonzero_coefs=3,
    max_iter=300,
    random_state=0,
)
atoms = model.fit(data).components_
