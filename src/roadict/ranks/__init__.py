"""Several processes or machines: the communicator, and the collectives built on it."""
