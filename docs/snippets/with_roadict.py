import numpy as np

from roadict import ROAD

data = np.load("data.npy")
model = ROAD(32, random_state=0)
atoms = model.fit(data).components_
