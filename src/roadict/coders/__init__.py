"""Sparse codes of samples in a given dictionary: one file per coder, `pick.encode` for all of them."""
