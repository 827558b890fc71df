"""Checkpoints: files on disk, their schedule, the folder's lock, and how a fit is saved and resumed."""
