"""What is assumed: kernels, links, emission families and item response models.

Formulas and their derivatives, no inference. The public names are listed in `__init__.pyi` and
loaded when first used; other folders import nothing else from here.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
