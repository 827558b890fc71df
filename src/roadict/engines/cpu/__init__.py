"""The CPU engine: one pass over the samples per iteration, compiled by Numba."""
