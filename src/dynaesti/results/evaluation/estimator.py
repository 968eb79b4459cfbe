"""The interface of estimators that evaluation fits again."""

from __future__ import annotations

from typing import Any, Protocol

from dynaesti.model import Kernel


class Estimator(Protocol):
    """What evaluation needs of an estimator; `DynAEsti` is one."""

    @property
    def kernel(self) -> Kernel:
        """Kernel of the curves."""

    def fit(self, data: Any) -> Any:
        """Fit responses."""

    def with_options(self, **changes: Any) -> Estimator:
        """An estimator with some options changed."""
