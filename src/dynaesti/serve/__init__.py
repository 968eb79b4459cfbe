"""The service: answers in over HTTP, abilities out; a log of answers in a database.

The public names are listed in `__init__.pyi` and loaded when first used. Other folders import
nothing else from here.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
