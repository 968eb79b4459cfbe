"""Ours beside other packages: prediction, truth of the posterior, speed, growth."""
