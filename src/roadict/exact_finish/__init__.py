"""The exact finish: from a run that has nearly settled to atoms and codes that reproduce the data to rounding."""
