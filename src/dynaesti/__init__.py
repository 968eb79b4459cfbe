"""dynaesti: abilities that change over time, and curves from probabilistic observations.

`DynAEsti` fits item response theory in which each person's ability is a curve; `CurvFiFE` fits a
smooth curve to anything with a likelihood. All public names are listed in `__init__.pyi`, and
loaded when first used, so that `import dynaesti` stays light.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
