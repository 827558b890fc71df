"""A page in the browser, served from this machine, to try roadict on one's own pictures and signals."""
