"""Options of an estimator by their names, as scikit-learn asks for them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from reprlib import Repr
from typing import Any, Self

from dynaesti.errors import InputError

SHORT = Repr()
SHORT.maxstring = SHORT.maxother = 60
RIVALS = ("kernel", "bandwidth")  # options of which one stands for the other


class Parameters:
    """An estimator's options as they were given: to read, to set, to clone and to print."""

    def keep_given(self, given: Mapping[str, Any]) -> None:
        """Keep the arguments of the constructor, which calls this last."""
        vars(self)["_given"] = {name: given[name] for name in self._defaults()}

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """The constructor's arguments with their default values."""
        arguments = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return {argument.name: argument.default for argument in arguments}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The options as they were given, by name.

        Parameters
        ----------
        deep : bool, default True
            For scikit-learn; no option is an estimator.
        """
        del deep
        return dict(vars(self)["_given"])

    def set_params(self, **changes: Any) -> Self:
        """Change options in place, as scikit-learn expects of its estimators.

        This is the one way to change an estimator: attributes are frozen, fits that were made
        before stay as they are, and a refused value leaves all options as they were. `kernel` and
        `bandwidth` replace each other.

        Parameters
        ----------
        **changes
            Options of the constructor.

        Returns
        -------
        estimator
            This one.

        Raises
        ------
        InputError
            If there is no such option, or it cannot be used.

        Examples
        --------
        >>> import dynaesti as dy
        >>> estimator = dy.DynAEsti("GRM")
        >>> estimator.set_params(rare=5, bandwidth=30.0)
        DynAEsti('GRM', bandwidth=30.0, rare=5)
        >>> estimator.get_params()["rare"]
        5
        """
        unknown = [name for name in changes if name not in self._defaults()]
        if unknown:
            raise InputError(
                f"set_params: no option {unknown[0]!r}; there are {', '.join(self._defaults())}"
            )
        kept = self.get_params()
        if any(changes.get(name) is not None for name in RIVALS):
            kept |= {name: None for name in RIVALS if name in kept}
        fresh = type(self)(**{**kept, **changes})
        vars(self).clear()
        vars(self).update(vars(fresh))
        return self

    def __sklearn_clone__(self) -> Self:
        return type(self)(**self.get_params())

    def __repr__(self) -> str:
        shown = []
        for k, (name, default) in enumerate(self._defaults().items()):
            value = vars(self)["_given"][name]
            if value is default or (type(value) is type(default) and repr(value) == repr(default)):
                continue
            text = value if isinstance(value, str) else None
            text = repr(text) if text is not None else SHORT.repr(value)
            shown.append(text if k == 0 else f"{name}={text}")
        return f"{type(self).__name__}({', '.join(shown)})"
