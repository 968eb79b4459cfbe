"""How many decimals of a column are worth reading."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

SIGNIFICANT = 3  # digits of a typical value
MOST_DECIMALS = 4


def decimals(column: npt.NDArray[Any]) -> int:
    """Decimals by which a typical value of the column has three significant digits, at most four.

    All values of a column have the same, so that they stand under each other. 0 for whole numbers.
    """
    if column.dtype.kind != "f":
        return 0
    values = np.abs(column[np.isfinite(column) & (column != 0)])
    if not values.size or np.all(values == np.floor(values)):
        return 0
    before_point = int(np.floor(np.log10(np.median(values)))) + 1
    return int(np.clip(SIGNIFICANT - before_point, 1, MOST_DECIMALS))
