"""Emission families: likelihoods of observations of a curve."""
