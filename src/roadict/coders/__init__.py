"""Sparse coding in a given dictionary: one file per coder, ``registry.encode`` for all of them."""
