"""Pictures: super-resolution, denoising and inpainting with learned dictionaries."""
