import numpy as np
from sporco.dictlrn.bpdndl import BPDNDictLearn

data = np.load("data.npy")
start = data[:32].T
start = start / np.linalg.norm(start, axis=0)
options = BPDNDictLearn.Options(
    {
        "MaxMainIter": 1000,
        "BPDN": {"rho": 0.3},
        "CMOD": {"rho": len(data) / 1e3},
    }
)
solver = BPDNDictLearn(start, data.T, 0.02, options)
solver.solve()
atoms = solver.getdict().T
