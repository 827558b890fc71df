import numpy as np
import spams

data = np.load("data.npy")
atoms = spams.trainDL(
    np.asfortranarray(data.T),
    K=32,
    mode=2,
    lambda1=0.05,
    iter=300,
    verbose=False,
).T
