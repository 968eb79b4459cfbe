"""A fit as a tree of arrays (xarray) with ArviZ's names of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.core import Array, whole_number
from dynaesti.errors import MissingExtraError
from dynaesti.inference import Marginals
from dynaesti.results.abilities import ability_marginals
from dynaesti.results.frames import IDENTITY
from dynaesti.results.plausible import plausible_curves
from dynaesti.results.predictions import predict_responses
from dynaesti.tables import as_frame

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit

EXACT = 1e-9  # sd of an ability that was drawn


def fit_datatree(fit: Fit, draws: int, at: Any, seed: int | None) -> Any:
    """The tree that `Fit.to_datatree` returns."""
    try:
        import xarray as xr
    except ImportError:
        raise MissingExtraError(
            "a tree of arrays needs xarray: pip install 'dynaesti[xarray]'"
        ) from None
    size = whole_number(draws, "draws", 1)
    fit.require_people()
    r = fit.responses
    theta, given = _draws_at_responses(fit, size, seed)
    steps = {"chain": [0], "draw": np.arange(size)}
    rows = {
        "id": ("response", _texts(r.people[r.person])),
        "item": ("response", _texts(r.items[r.item])),
        "time": ("response", np.asarray(fit.from_clock(r.clock_times))),
    }
    posterior: dict[str, Any] = {
        "ability_at_response": (("chain", "draw", "response"), theta[None])
    }
    coordinates: dict[str, Any] = {**steps, **rows}
    if at is not None:
        curves = [plausible_curves(fit, label, at, size, seed) for label in fit.ids]
        posterior["ability"] = (("chain", "draw", "person", "at"), np.stack(curves, 1)[None])
        coordinates |= {"person": _texts(r.people), "at": np.asarray(at)}
    items = as_frame(fit.items)
    held = {name: ("item_label", items[name].to_numpy()) for name in items.columns[2:]}
    return xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(posterior, coordinates),
            "log_likelihood": xr.Dataset(
                {"resp": (("chain", "draw", "response"), given[None])}, {**steps, **rows}
            ),
            "observed_data": xr.Dataset({"resp": ("response", r.resp)}, rows),
            "constant_data": xr.Dataset(held, {"item_label": _texts(r.items)}),
        }
    )


def _texts(labels: Any) -> Any:
    """Labels as text, which arrays of a file can hold."""
    return np.array([str(label) for label in labels.tolist()])


def _draws_at_responses(fit: Fit, size: int, seed: int | None) -> tuple[Array, Array]:
    """Abilities drawn at all responses, and the log-likelihood of each response given them.

    Two arrays (size, n_responses). What effects add to single responses is in the second, at their
    estimates.
    """
    r = fit.responses
    theta = np.empty((size, len(r)))
    for who, label in enumerate(fit.ids):
        mine = slice(r.person_start[who], r.person_start[who + 1])
        times, back = np.unique(r.clock_times[mine], return_inverse=True)
        theta[:, mine] = plausible_curves(fit, label, fit.from_clock(times), size, seed)[:, back]
    added = _effects_at_responses(fit)
    z = (theta + added - fit.shift) / fit.gain
    certain = np.ones((1, len(r)))
    given = [
        predict_responses(
            fit.bank, fit.coding, r.item, r.resp, Marginals(certain, one[None], EXACT * certain)
        ).given
        for one in z
    ]
    with np.errstate(divide="ignore"):
        return theta, np.log(np.array(given))


def _effects_at_responses(fit: Fit) -> Array:
    """What effects add to the ability that each response sees, (n_responses,)."""
    r = fit.responses
    effects = fit.priors.effects
    if effects is None:
        return np.zeros(len(r))
    group = r.group_among(r.groups)[r.person]
    seen = ability_marginals(fit, r.person, r.clock_times, group, effects.rows(r, r))
    return seen.mean(IDENTITY) - fit.marginals(r.person, r.clock_times).mean(IDENTITY)
