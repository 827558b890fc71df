"""Checkpoints: files on disk, when they are written, who owns the folder, a fit in progress and back."""
