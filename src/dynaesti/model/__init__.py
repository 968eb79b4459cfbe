"""What is assumed: kernels, links, emission families, item response models.

Plain NumPy, no inference.

Its public surface is listed in `__init__.pyi`, and loaded when first used; nothing else is imported
from outside this folder.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
