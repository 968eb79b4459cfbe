"""Responses past memory and past one machine.

Its public surface is listed in `__init__.pyi`, and loaded when first used; nothing else is imported
from outside this folder.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
