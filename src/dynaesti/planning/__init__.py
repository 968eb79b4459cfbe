"""Studies planned by simulation: how wide bands will be, and how often an effect will be found."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
