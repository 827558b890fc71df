"""Input and output files: tables of samples, models, and atomic writes."""
