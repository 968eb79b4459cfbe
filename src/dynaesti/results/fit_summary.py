"""The summary of a fit: sentences, facts, and the tables that a paper prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynaesti.data import count_noun
from dynaesti.tables import Frame, Summary, as_frame

if TYPE_CHECKING:
    from dynaesti.results.fit_base import FitBase

CHECKS = ("share", "item_rest")  # columns of the item table that a summary leaves out


def fit_summary(fit: FitBase) -> Summary:
    """All that there is to say of a fit."""
    tables = {"Items": items_for_print(as_frame(fit.items))}
    if fit.priors.effects is not None:
        tables["Effects"] = as_frame(fit.effects)
    tables["How abilities move: kernels and their weights"] = as_frame(fit.bandwidths)
    items = count_noun(fit.item_labels.size, "items")
    return Summary(
        f"Fit of {items} ({fit.model_names()})", tuple(fit.sentences()), _facts(fit), tables
    )


def _facts(fit: FitBase) -> dict[str, str]:
    facts = {name: f"{count:,}" for name, count in fit.sizes.items()}
    facts |= {"models": fit.model_names(), "scale": fit.scale.name}
    if not fit.trace:  # stated, not learned
        return facts
    verdict = "converged" if fit.converged else "did NOT converge"
    facts["EM"] = f"{verdict} after {count_noun(len(fit.trace), 'iterations')}"
    return facts | fit.evidence_facts()


def criteria(fit: FitBase, log_evidence: float) -> dict[str, str]:
    """Evidence and information criteria."""
    deviance = -2 * log_evidence
    k = fit.n_parameters
    return {
        "log evidence": f"{log_evidence:.2f}",
        "parameters": f"{k:.1f}".removesuffix(".0"),
        "AIC": f"{deviance + 2 * k:.1f}",
        "BIC": f"{deviance + np.log(max(fit.sizes['people'], 1)) * k:.1f}",
    }


def items_for_print(items: Frame) -> Frame:
    """The item table with each standard error beside its estimate, and flags where there are any.

    Intercepts are left out where difficulties say the same.
    """
    names = items.columns
    told: dict[str, object] = {}
    for name in names:
        if name.startswith("se_") or name in CHECKS or _is_intercept(name, names):
            continue
        if name == "flag" and not any(items[name]):
            continue
        told[name] = items[name]
        if f"se_{name}" in names:
            told[f"se_{name}"] = items[f"se_{name}"]
    if told.get("flag") is not None:
        told["flag"] = told.pop("flag")  # last
    return Frame(told)


def _is_intercept(name: str, names: list[str]) -> bool:
    return name.startswith("intercept") and name.replace("intercept", "b") in names
