"""Item models: each fills its rows from parameters, and is fitted from expected counts on them."""

from dynaesti.errors import InputError
from dynaesti.items.amounts import BetaItem, GaussianItem, PoissonItem
from dynaesti.items.base import AmountModel, ItemModel, Weak, log_odds
from dynaesti.items.logistic import FourPL, OnePL, ThreePL, TwoPL
from dynaesti.items.ordered import (
    GeneralPartialCredit,
    Golf,
    Graded,
    Nominal,
    PartialCredit,
    RatingScale,
    log_between,
)
from dynaesti.items.own import MOST_VALUES, OwnModel

MODELS: dict[str, type[ItemModel]] = {
    model.name: model
    for model in (
        OnePL,
        TwoPL,
        ThreePL,
        FourPL,
        Graded,
        PartialCredit,
        GeneralPartialCredit,
        RatingScale,
        Nominal,
        Golf,
        PoissonItem,
        GaussianItem,
        BetaItem,
    )
}
ALIASES = {"rasch": "1PL", "graded": "GRM", "partial credit": "PCM", "nominal": "NRM"}


def item_model(model: object, signed: bool = False) -> ItemModel:
    """A model from its name or itself."""
    if isinstance(model, ItemModel):
        return model
    if isinstance(model, str):
        lookup = {name.lower(): name for name in MODELS} | ALIASES
        if model.lower() in lookup:
            return MODELS[lookup[model.lower()]](signed=signed)
    raise InputError(
        f"model: no item model {model!r}; there are {', '.join(MODELS)}, or an OwnModel"
    )


__all__ = [
    "MODELS",
    "MOST_VALUES",
    "AmountModel",
    "BetaItem",
    "FourPL",
    "GaussianItem",
    "GeneralPartialCredit",
    "Golf",
    "Graded",
    "ItemModel",
    "Nominal",
    "OnePL",
    "OwnModel",
    "PartialCredit",
    "PoissonItem",
    "RatingScale",
    "ThreePL",
    "TwoPL",
    "Weak",
    "item_model",
    "log_between",
    "log_odds",
]
