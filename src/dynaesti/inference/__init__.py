"""Inference: the posterior of curves for a given model.

Contents: grafting (the paper's CurvFiFE, which is expectation propagation), the solvers of
Gaussian-process priors, tilted moments, and the audit.

The public names are listed in `__init__.pyi` and loaded when first used. Other folders import
nothing else from here.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
