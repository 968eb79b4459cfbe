"""Audits of everyone's curve: whose Gaussian agrees with the exact posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.core import whole_number
from dynaesti.data import as_list, count_noun, index_of, make_frame, try_index_of
from dynaesti.errors import HealthWarning, warn_user
from dynaesti.inference import Audit, Verdict

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit
    from dynaesti.results.fit_base import FitBase

# Draws that acquit a curve: by them means are known to about 0.03 sd, well within the 0.1 that is
# allowed. Whoever they do not acquit is audited again by as many as were asked for.
FIRST_DRAWS = 2000
LEAST_DRAWS = 200  # as of a single audit
SHOWN = 3  # people whom the warning names


def audit(fit: FitBase, ids: Any = None, *, draws: int = 20_000, seed: int = 0) -> Any:
    """Compare everyone's curve with its exact posterior, items and population as estimated.

    Bands are Gaussian, or small mixtures of Gaussians. Where steep items with guessing, or few
    answers, make a posterior skewed or give it two humps, they can be off: this finds for whom.
    It takes about 0.03 CPU seconds a person.

    Parameters
    ----------
    fit : Fit or ShardedFit
    ids : label or sequence of labels, optional
        Some of the people. Default: everyone.
    draws : int, default 20000
        Draws for each curve in doubt, at least 200; 2,000 are enough to see that others are safe.
    seed : int, default 0

    Returns
    -------
    frame
        Columns id, n (answers), verdict ("safe", "unsafe", "unreliable"), mean_error (largest over
        the person's time, in sds), sd_error (relative), pareto_k (the draws reach the exact
        posterior below 0.7; -inf where all weigh about the same). Those who are worst come first.

    Warns
    -----
    HealthWarning
        If curves are not safe: how many, and who.

    See Also
    --------
    Curve.audit : the audit of one curve, with corrected values.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> found = dy.evaluation.audit(dy.DynAEsti("2PL").fit(table), ["p01", "p02"])
    >>> found["verdict"].tolist()
    ['safe', 'safe']
    """
    draws = whole_number(draws, "draws", LEAST_DRAWS)
    wanted = None if ids is None else _known(fit, as_list(ids))
    rows = [row for part in fit.parts() for row in _audits_of(part, wanted, draws, seed)]
    rows.sort(key=lambda row: (row["verdict"] == Verdict.SAFE, -row["mean_error"]))
    _warn_of([row["id"] for row in rows if row["verdict"] != Verdict.SAFE], len(rows))
    names = ("id", "n", "verdict", "mean_error", "sd_error", "pareto_k")
    return make_frame({name: [row[name] for row in rows] for name in names}, fit.frame)


def _known(fit: FitBase, ids: list[Any]) -> list[Any]:
    """The ids, refused by name where one is unknown, before anybody is audited."""
    people = np.concatenate([part.responses.people.astype(object) for part in fit.parts()])
    index_of(people, ids, "ids")
    return ids


def _audits_of(fit: Fit, wanted: list[Any] | None, draws: int, seed: int) -> list[dict[str, Any]]:
    """A row for each of the people of a fit in memory, or of those wanted who are in it."""
    people = fit.responses.people
    chosen = np.arange(people.size) if wanted is None else np.unique(try_index_of(people, wanted))
    rows = []
    for k in chosen[chosen >= 0]:
        label = people[k : k + 1].tolist()[0]
        found = _audit_of(fit, label, draws, seed)
        mean, sd = found.off
        rows.append(
            {
                "id": label,
                "n": int(np.diff(fit.responses.person_start)[k]),
                "verdict": str(found.outcome),
                "mean_error": mean,
                "sd_error": sd,
                "pareto_k": found.pareto_k,
            }
        )
    return rows


def _audit_of(fit: Fit, label: Any, draws: int, seed: int) -> Audit:
    """The audit of one person: by few draws if these acquit, else by all."""
    curve = fit.curve(label)
    found = curve.audit(min(draws, FIRST_DRAWS), seed)
    return found if found.safe or draws <= FIRST_DRAWS else curve.audit(draws, seed)


def _warn_of(unsafe: list[Any], n_people: int) -> None:
    """Say how many curves are not safe, if any are."""
    if not unsafe:
        return
    shown = ", ".join(repr(label) for label in unsafe[:SHOWN])
    more = ", …" if len(unsafe) > SHOWN else ""
    warn_user(
        f"the exact posterior of {len(unsafe)} of {count_noun(n_people, 'curves')} is unlike the "
        f"Gaussian that bands are made of ({shown}{more}); for these use "
        "fit.curve(id).exact(times)",
        HealthWarning,
    )
