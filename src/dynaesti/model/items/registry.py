"""Item models: each fills its rows from parameters, and is fitted from expected counts on them."""

from dynaesti.errors import InputError
from dynaesti.model.items.base import ItemModel
from dynaesti.model.items.continuous import BetaItem, GaussianItem, PoissonItem
from dynaesti.model.items.dichotomous import FourPL, OnePL, ThreePL, TwoPL
from dynaesti.model.items.pivot import PivotPartialCredit
from dynaesti.model.items.polytomous import (
    GeneralPartialCredit,
    Graded,
    Nominal,
    PartialCredit,
    RatingScale,
)

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
        PivotPartialCredit,
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
        f"model: no item model {model!r}; there are {', '.join(MODELS)}, or a CustomItemModel"
    )
