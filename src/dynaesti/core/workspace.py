"""Memory that is used again from one chunk of work to the next."""

import numpy as np

from dynaesti.core.arrays import Array


class Workspace:
    """Memory that one chunk of curves after the other works in.

    Fresh pages for each would cost a tenth of a fit's time.
    """

    def __init__(self) -> None:
        self._pages = np.empty(0)

    def arrays(self, count: int, size: int) -> Array:
        """So many arrays (count, size) of anything, until the next call."""
        if self._pages.size < count * size:
            self._pages = np.zeros(count * size)
        return self._pages[: count * size].reshape(count, size)
