"""Tables that come out: frames for people to read, and files of them.

What other folders may use is listed in ``__init__.pyi``, and loaded when first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
