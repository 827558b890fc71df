"""Pictures: super-resolution, denoising and inpainting with learned dictionaries."""

from roadict.pictures.denoising import denoise
from roadict.pictures.inpainting import inpaint
from roadict.pictures.recipe import Recipe
from roadict.pictures.superresolution import SuperResolution
from roadict.pictures.upscaling import upscale

__all__ = ["Recipe", "SuperResolution", "denoise", "inpaint", "upscale"]
