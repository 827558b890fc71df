"""The GPU engine: Triton kernels and PyTorch operations, imported only where they are needed."""
