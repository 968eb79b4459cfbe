"""Item models by name."""

import numpy as np

from dynaesti.core import Array
from dynaesti.errors import InputError, option
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


GRADE_STEP = 0.25  # of partial credit
MOST_GRADES = 12  # distinct whole numbers that are taken as grades, not as counts


def default_model(values: Array) -> str:
    """The model for distinct responses: 2PL for 0 and 1, GRM for a few whole numbers or halves.

    For amounts the model has to be named.
    """
    if np.isin(values, (0, 1)).all():
        return "2PL"
    if values.size <= MOST_GRADES and np.all(values / GRADE_STEP == np.floor(values / GRADE_STEP)):
        return "GRM"
    raise InputError(
        f"resp: {values.size} different values from {values[0]:g} to {values[-1]:g}; name a "
        f"{option('model')}: poisson for counts, "
        "gaussian for measurements, beta for shares between 0 and 1, GRM for grades"
    )


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
