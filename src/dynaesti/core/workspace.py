"""Memory that is reused from one chunk of work to the next."""

import numpy as np

from dynaesti.core.arrays import Array


class Workspace:
    """Memory that chunks of curves use one after the other.

    Fresh pages for each chunk would cost a tenth of a fit's time.
    """

    def __init__(self) -> None:
        self._pages = np.empty(0)

    def arrays(self, count: int, size: int) -> Array:
        """An array (count, size) with arbitrary content, valid until the next call."""
        if self._pages.size < count * size:
            self._pages = np.zeros(count * size)
        return self._pages[: count * size].reshape(count, size)
