"""A page in the browser, served from this machine, to try roadict on your own pictures and signals."""
