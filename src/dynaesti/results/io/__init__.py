"""Curves and fits to files and back."""
