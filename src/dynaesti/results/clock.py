"""What a fit's data say of further data: how times are counted, and which columns are needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynaesti.core import Array, as_vector
from dynaesti.data import Responses, columns_needed, parse_iso
from dynaesti.model import Effects


def to_clock(template: Responses, times: Any) -> Array:
    """Users' times on the clock of a fit whose responses are like `template`: (n_times,).

    It is the time since the fit's origin, or since each person's start where the fit counts so.
    """
    times = parse_iso(times, "at")
    if template.clock == "person":
        return as_vector(times, "at")
    if not template.axis.stamps:
        return as_vector(times, "at") - template.axis.origin
    return template.axis.offsets(times, "at")


def from_clock(template: Responses, offsets: Array) -> Any:
    """Times on the clock as users give them: the inverse of `to_clock`."""
    return offsets if template.clock == "person" else template.axis.restore(offsets)


def covariate_kinds(effects: Effects | None, options: Mapping[str, Any]) -> dict[str, str]:
    """Columns that effects and freed items need of further data, with their kinds."""
    kinds = columns_needed(None, options.get("free"))  # absent in older files
    if effects is None:
        return kinds
    return kinds | {
        name: "category" if name in effects.levels else "number" for name in effects.formula.columns
    }
