"""Tilted moments: (log Z, mean, variance) of a likelihood times a Gaussian cavity."""
