"""Item models by name."""

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
    """Item model from its name, or the model itself.

    Parameters
    ----------
    model : str or ItemModel
        A name of `MODELS` or `ALIASES` in any case, such as "2PL", "rasch" or "poisson".
    signed : bool, default False
        Whether slopes may be negative. A model that is given as an object keeps its own choice.

    Returns
    -------
    ItemModel
        The model.

    Raises
    ------
    InputError
        If there is no model of that name.
    """
    if isinstance(model, ItemModel):
        return model
    if isinstance(model, str):
        lookup = {name.lower(): name for name in MODELS} | ALIASES
        if model.lower() in lookup:
            return MODELS[lookup[model.lower()]](signed=signed)
    raise InputError(
        f"model: no item model {model!r}; there are {', '.join(MODELS)}, or a CustomItemModel"
    )
