"""Pictures: super-resolution, denoising and inpainting with learned dictionaries."""

from roadict.pictures.denoise import denoise
from roadict.pictures.inpaint import inpaint
from roadict.pictures.superresolution import SuperResolution
from roadict.pictures.upscale import upscale

__all__ = ["SuperResolution", "denoise", "inpaint", "upscale"]
