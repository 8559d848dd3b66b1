"""Turnfold: a reverse proxy that keeps growing conversations inside the model's context window."""

__version__ = "0.1.0"
