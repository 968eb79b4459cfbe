"""Gaussian-process priors at many sites: weight space, state space, dense; behind one interface."""
