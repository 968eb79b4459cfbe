"""Solvers of Gaussian-process priors at many sites: weight space, state space and dense.

`choice` picks and builds them, `contract` says what each offers.
"""
