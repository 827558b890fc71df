"""The arithmetic of one iteration: the literal reference, the CPU engine and the GPU engine."""
