"""Tilted moments: (log Z, mean, variance) of a likelihood times a Gaussian cavity.

`match` is the entry for many sites; it uses `on_grid`, and `adaptive` where that is not accurate.
"""
