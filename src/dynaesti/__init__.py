"""dynaesti: curves from probabilistic observations.

`CurvFiFE` fits a smooth curve to anything with a likelihood. Names are loaded when first used, so that `import dynaesti` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "curvfife": ("CurvFiFE",),
    "curves": ("Curve",),
    "many": ("Curves",),
    "audit": ("Audit",),
    "opening": ("load",),
    "dynaesti": ("DynAEsti", "refresh"),
    "results": ("Fit",),
    "shardedfit": ("ShardedFit",),
    "shards": ("Shards",),
    "preparing": ("prepare",),
    "engines": ("DaskEngine",),
    "responses": ("Responses",),
    "items": ("Golf", "ItemModel", "OwnModel"),
    "emissions": (
        "Bernoulli",
        "Binomial",
        "Emissions",
        "Gaussian",
        "ItemResponses",
        "NegativeBinomial",
        "Ordinal",
        "Poisson",
        "StudentT",
        "Table",
    ),
    "priors.kernels": (
        "RBF",
        "Kernel",
        "Level",
        "Matern12",
        "Matern32",
        "Matern52",
        "Periodic",
        "Trend",
        "Wiener",
    ),
    "errors": (
        "BandwidthWarning",
        "ConvergenceWarning",
        "DynaestiError",
        "DynaestiWarning",
        "EmissionError",
        "HealthWarning",
        "InputError",
        "MissingExtraError",
        "ResponseError",
        "StorageError",
    ),
}
_WHERE = {name: home for home, names in _HOMES.items() for name in names}

if TYPE_CHECKING:
    from dynaesti.audit import Audit
    from dynaesti.curves import Curve
    from dynaesti.curvfife import CurvFiFE
    from dynaesti.dynaesti import DynAEsti, refresh
    from dynaesti.emissions import (
        Bernoulli,
        Binomial,
        Emissions,
        Gaussian,
        ItemResponses,
        NegativeBinomial,
        Ordinal,
        Poisson,
        StudentT,
        Table,
    )
    from dynaesti.engines import DaskEngine
    from dynaesti.errors import (
        BandwidthWarning,
        ConvergenceWarning,
        DynaestiError,
        DynaestiWarning,
        EmissionError,
        HealthWarning,
        InputError,
        MissingExtraError,
        ResponseError,
        StorageError,
    )
    from dynaesti.items import Golf, ItemModel, OwnModel
    from dynaesti.many import Curves
    from dynaesti.opening import load
    from dynaesti.preparing import prepare
    from dynaesti.priors.kernels import (
        RBF,
        Kernel,
        Level,
        Matern12,
        Matern32,
        Matern52,
        Periodic,
        Trend,
        Wiener,
    )
    from dynaesti.responses import Responses
    from dynaesti.results import Fit
    from dynaesti.shardedfit import ShardedFit
    from dynaesti.shards import Shards

__all__ = [
    "RBF",
    "Audit",
    "BandwidthWarning",
    "Bernoulli",
    "Binomial",
    "ConvergenceWarning",
    "CurvFiFE",
    "Curve",
    "Curves",
    "DaskEngine",
    "DynAEsti",
    "DynaestiError",
    "DynaestiWarning",
    "EmissionError",
    "Emissions",
    "Fit",
    "Gaussian",
    "Golf",
    "HealthWarning",
    "InputError",
    "ItemModel",
    "ItemResponses",
    "Kernel",
    "Level",
    "Matern12",
    "Matern32",
    "Matern52",
    "MissingExtraError",
    "NegativeBinomial",
    "Ordinal",
    "OwnModel",
    "Periodic",
    "Poisson",
    "ResponseError",
    "Responses",
    "ShardedFit",
    "Shards",
    "StorageError",
    "StudentT",
    "Table",
    "Trend",
    "Wiener",
    "__version__",
    "load",
    "prepare",
    "refresh",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'dynaesti' has no attribute {name!r}")
    return getattr(import_module(f"dynaesti.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
