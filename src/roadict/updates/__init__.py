"""Dictionary updates: (data, dictionary, codes) -> dictionary, codes."""
