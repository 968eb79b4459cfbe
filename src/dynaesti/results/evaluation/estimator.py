"""What evaluation asks of an estimator."""

from __future__ import annotations

from typing import Any, Protocol

from dynaesti.model import Kernel


class Estimator(Protocol):
    """What evaluation asks of an estimator."""

    @property
    def kernel(self) -> Kernel:
        """Prior of the curves."""

    def fit(self, data: Any) -> Any:
        """A fit to responses."""

    def with_options(self, **changes: Any) -> Estimator:
        """The same estimator with other options."""
