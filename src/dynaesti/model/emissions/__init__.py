"""Families of observations: log f(y), vectorised."""
