"""Files people give and get: tables of samples, models, and atomic writes."""
