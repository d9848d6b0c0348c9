"""Exports: all that a user has, as one zip."""
