"""The parts of a curve as headers and arrays, and back.

Every part named by its class, nothing pickled.

A user's functions cannot be stored. Emission functions are tabulated on the latent scale around the
curve; a link or mean function is asked for again when the file is opened.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.core import Array, Arrays, Header, check_array, is_number, require
from dynaesti.data import KINDS, read_axis
from dynaesti.errors import DynaestiWarning, NeedsFunctionError, warn_user
from dynaesti.inference import (
    SOLVERS,
    EPResult,
    GraftedCurve,
    Moments,
    NaturalGaussian,
    Observations,
    is_one_number,
)
from dynaesti.model import (
    BUILT_IN,
    FAMILIES,
    CohortMean,
    Emissions,
    Functions,
    ItemResponses,
    Kernel,
    Link,
    LinkedPoints,
    SmoothBasis,
    Table,
    as_emissions,
    as_link,
    effect_sds,
    effects_header,
    emission_blocks,
    kernel_header,
    read_effects,
    read_kernel,
)
from dynaesti.results.curve_priors import MIN_WEIGHT, WeightedPrior

if TYPE_CHECKING:
    from dynaesti.results.curve import Curve

NUMBERS = ("log_evidence", "log_partition", "sweeps", "converged", "residual", "solver")
PRIOR_NUMBERS = ("log_prior", "log_evidence", "weight")
TABLE_SDS = 8.0  # prior sds around the curve that tables of a user's functions cover
TABLE_POINTS = 2001


def curve_header(curve: Curve, arrays: Arrays) -> Header:
    """The header of a curve's file; its arrays are added to `arrays`."""
    components = [
        None if c is None else component_header(c, f"component{k}", arrays)
        for k, c in enumerate(curve.components)
    ]
    priors = [
        {"kernel": kernel_header(p.kernel), **{key: getattr(p, key) for key in PRIOR_NUMBERS}}
        for p in curve.priors
    ]
    return {
        "observations": observations_header(curve.observations, arrays, latent_reach(curve)),
        "priors": priors,
        "components": components,
        "method": curve.method,
        "frame": curve.frame,
        "solver": curve.solver,
        "latent": curve.shown_link is not None,
        "refining": curve.refining,
        "effects": effects_header(curve.column_effects, arrays),
    }


def latent_reach(curve: Curve) -> Array:
    """Latent values that the curve can take, at which a user's functions are tabulated."""
    means = curve.marginals(curve.grid(50)).means
    ends = np.array(curve.observations.span)
    components = curve.weighted_components()[2]
    reach = TABLE_SDS * max(float(np.sqrt(c.kernel.cov(ends, ends).max())) for c in components)
    return np.linspace(float(means.min()) - reach, float(means.max()) + reach, TABLE_POINTS)


def read_curve(header: Header, arrays: Arrays, link: Any, mean: Any) -> dict[str, Any]:
    """The fields of a Curve from what `curve_header` wrote.

    `link` and `mean` are needed where they were functions of the user's own.
    """
    observations = read_observations(header["observations"], arrays, link, mean)
    effects = read_effects(header.get("effects"), arrays)  # absent in files of older versions
    n_columns = 0 if effects is None else effects.n_columns
    require(
        n_columns == (0 if observations.columns is None else observations.columns.shape[1]),
        "the columns of effects",
    )
    priors = tuple(_read_prior(p) for p in header["priors"])
    components = tuple(
        None if c is None else read_component(p.kernel, c, f"component{k}", arrays, observations)
        for k, (c, p) in enumerate(zip(header["components"], priors, strict=True))
    )
    require(
        any(
            p.weight > MIN_WEIGHT and c is not None for p, c in zip(priors, components, strict=True)
        ),
        "no prior carries the curve",
    )
    require(
        header["solver"] in (None, *SOLVERS)
        and isinstance(header["method"], str)
        and header["frame"] in (None, *KINDS),
        "no options",
    )
    return {
        "observations": observations,
        "priors": priors,
        "components": components,
        "method": header["method"],
        "frame": header["frame"],
        "shown_link": BUILT_IN["identity"] if header["latent"] else None,
        "solver": header["solver"],
        "refining": header.get("refining", False),  # absent in files of older versions
        "column_effects": effects,
    }


def _read_prior(header: Header) -> WeightedPrior:
    prior = WeightedPrior(
        read_kernel(header["kernel"]), **{key: header[key] for key in PRIOR_NUMBERS}
    )
    require(
        all(is_number(getattr(prior, key)) for key in PRIOR_NUMBERS) and 0 <= prior.weight <= 1,
        "a prior is malformed",
    )
    return prior


def observations_header(obs: Observations, arrays: Arrays, reach: Array) -> Header:
    """Time axis, link, mean and emissions; functions are tabulated at the latent values `reach`."""
    arrays["offsets"] = obs.offsets
    if obs.columns is not None:
        arrays["columns"] = obs.columns
    parts = []
    for k, (part, _) in enumerate(emission_blocks(obs.emissions)):
        parts.append(_emission_header(part, f"emission{k}", arrays, obs.link, reach))
    return {
        "axis": asdict(obs.axis),
        "link": obs.link.name,
        "mean": None if callable(obs.mean) else float(obs.mean),
        "cohort_mean": _cohort_mean_header(obs.mean, arrays),
        "centre": obs.centre,
        "reach": obs.reach,
        "emissions": parts,
        "separate": obs.separate,
    }


def read_observations(header: Header, arrays: Arrays, link: Any, mean: Any) -> Observations:
    """Observations from what `observations_header` wrote; a user's own functions must be given."""
    if header.get("cohort_mean") and mean is None:  # absent in files of older versions
        mean = _read_cohort_mean(header, arrays)
    if header["mean"] is None and mean is None:
        raise NeedsFunctionError(
            "mean: the curve was fitted with a function of time as its mean; pass it again: "
            "load(path, mean=…)"
        )
    if link is None and header["link"] not in BUILT_IN:
        raise NeedsFunctionError(
            "link: the curve was fitted with functions of your own; pass them again: load(path, "
            "link=(…, …))"
        )
    emissions = as_emissions([_read_emission(part, arrays) for part in header["emissions"]])
    check_array(arrays["offsets"], (len(emissions),), "the times")
    require(
        is_number(header["reach"]) and header["reach"] > 0, "the reach of the tables is malformed"
    )
    return Observations(
        read_axis(header["axis"]),
        arrays["offsets"],
        emissions,
        as_link(header["link"] if link is None else link),
        float(header["mean"]) if mean is None else mean,
        header["reach"],
        float(header.get("centre", 0.0)),
        _read_columns(arrays, len(emissions)),
        header.get("separate", False) is True,  # absent in files of older versions
    )


def _read_columns(arrays: Arrays, n_emissions: int) -> Array | None:
    """Columns of effects, checked; None where there are none."""
    columns = arrays.get("columns")
    if columns is None:
        return None
    width = columns.shape[1] if columns.ndim == 2 else 0
    check_array(columns, (n_emissions, width), "the columns of effects", "f")
    return np.asarray(columns)


def _cohort_mean_header(mean: Any, arrays: Arrays) -> bool:
    """Whether the mean is that of a cohort, whose arrays are added to `arrays`."""
    if not isinstance(mean, CohortMean):
        return False
    arrays |= {
        "mean.knots": mean.spline.knots,
        "mean.values": mean.spline.values,
        "mean.line": np.array(mean.line),
    }
    return True


def _read_cohort_mean(header: Header, arrays: Arrays) -> CohortMean:
    """The mean of a cohort from a file, checked."""
    knots, values = arrays["mean.knots"], arrays["mean.values"]
    check_array(knots, (knots.size,), "the knots of the mean")
    check_array(values, (knots.size, 1), "the values of the mean")
    require(knots.size > 1 and bool((np.diff(knots) > 0).all()), "the knots of the mean")
    line = arrays.get("mean.line", np.zeros(2))  # absent in files of older versions
    check_array(line, (2,), "the line of the mean", "f")
    spline = SmoothBasis(knots, values, np.zeros(1))
    return CohortMean(spline, read_axis(header["axis"]), (float(line[0]), float(line[1])))


def component_arrays(component: GraftedCurve) -> dict[str, Any]:
    """Arrays of a component, by the names that they have in the file."""
    return {
        "instants": component.instants,
        "groups": component.groups,
        "precision": component.ep.sites.precision,
        "shift": component.ep.sites.shift,
        "curve_precision": component.latent_sites.precision,
        "curve_shift": component.latent_sites.shift,
        "cav_mean": component.ep.cavity.mean,
        "cav_var": component.ep.cavity.variance,
        "log_z": component.ep.log_z,
    }


def component_header(component: GraftedCurve, name: str, arrays: Arrays) -> Header:
    """Header of a component, with its numbers; its arrays are added to `arrays`."""
    arrays.update({f"{name}.{key}": part for key, part in component_arrays(component).items()})
    if component.skewness is not None:
        arrays[f"{name}.skewness"] = component.skewness
    return {key: getattr(component, key) for key in NUMBERS}


def _component(kernel: Kernel, header: Header, name: str, arrays: Arrays) -> GraftedCurve:
    """A component as the file has it, not checked yet."""

    def part(key: str) -> Any:
        return arrays[f"{name}.{key}"]

    ep = EPResult(
        NaturalGaussian(part("precision"), part("shift")),
        Moments(part("cav_mean"), part("cav_var")),
        part("log_z"),
        np.array([header["log_evidence"]], dtype=np.float64),
        np.array([header["log_partition"]], dtype=np.float64),
        np.array([header["converged"]]),
        np.array([header["residual"]], dtype=np.float64),
        np.array([header["sweeps"]]),
    )
    latent = NaturalGaussian(part("curve_precision"), part("curve_shift"))
    return GraftedCurve(kernel, header["solver"], part("instants"), part("groups"), ep, latent)


def read_component(
    kernel: Kernel, header: Header, name: str, arrays: Arrays, observations: Observations
) -> GraftedCurve:
    """A component from what `component_header` wrote, checked against its observations."""
    require(
        type(header["converged"]) is bool
        and type(header["sweeps"]) is int
        and all(is_number(header[key]) for key in ("residual", "log_evidence", "log_partition"))
        and header["solver"] in SOLVERS,
        "a component is malformed",
    )
    made = _component(kernel, header, name, arrays)
    made = replace(made, columns=observations.columns_at_sites)
    n_columns = 0 if made.columns is None else made.columns.shape[1]
    require(effect_sds(kernel).size == n_columns, "the columns of effects")
    count = observations.instants.size
    whole = is_one_number(kernel, observations)
    check_array(made.groups, (1 if whole else count,), "the groups of a component", "i")
    require(
        np.array_equal(made.groups, [count] if whole else np.arange(count)),
        "the groups of a component are misplaced",
    )
    for key, part in component_arrays(made).items():
        kind = "i" if key == "groups" else "f"
        check_array(part, made.groups.shape, f"{key} of a component", kind)
    require(
        whole or np.array_equal(made.instants, observations.instants),
        "the instants of a component are not those of its data",
    )
    require((made.ep.cavity.variance > 0).all(), "a component is malformed")
    skewness = arrays.get(f"{name}.skewness")
    if skewness is None and f"{name}.widening" not in arrays:
        return made
    if skewness is not None:
        check_array(skewness, (2, made.groups.size), "the skewness of a component", "f")
    return _corrected(made, observations, skewness)


def _corrected(
    plain: GraftedCurve, observations: Observations, skewness: Array | None
) -> GraftedCurve:
    """The component with its second-order correction, in the features of this machine.

    Features are eigenvectors, whose signs, and at the last of them the number, differ between
    processors. Files of older versions hold the correction in the features of where they were
    written, which says only that there was one: it is computed anew.
    """
    from dynaesti.inference import corrected_by, second_order_corrected  # compiled: few need it

    try:
        if skewness is not None:
            found = corrected_by(plain, skewness)
        else:
            found = second_order_corrected(plain, observations)
    except np.linalg.LinAlgError:
        found = None
    if found is None:
        return plain
    return replace(found, ep=plain.ep)


def _emission_header(
    part: Emissions, name: str, arrays: Arrays, link: Link, reach: Array
) -> Header:
    """Header of emissions, with the family's name; its numbers are added to `arrays`."""
    if isinstance(part, Functions) or part.kind not in FAMILIES:
        part = _tabulated(part, link, reach)
    rest: Header = {}
    if isinstance(part, ItemResponses):
        columns = {"resp": part.resp, **dict(zip(part.names, part.params, strict=True))}
        rest = {"model": part.name}
    elif isinstance(part, Table):
        columns = {"grid": part.grid, "log_lik": part.log_lik}
        rest = {"latent": part.latent}
    else:
        columns = vars(part)
    arrays.update({f"{name}.{key}": value for key, value in columns.items()})
    return {"kind": part.kind, "name": name, "columns": list(columns), "rest": rest}


def _tabulated(part: Emissions, link: Link, reach: Array) -> Table:
    """Functions as a table on the latent scale, with a warning where they are sharper than it."""
    rows = np.arange(len(part))
    middle = 0.5 * (reach[1:] + reach[:-1])
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        table = Table(
            reach,
            part.log_prob(LinkedPoints(np.tile(reach, (rows.size, 1)), link), rows),
            latent=True,
        )
        at = LinkedPoints(np.tile(middle, (rows.size, 1)), link)
        truth = part.log_prob(at, rows)
        off = np.abs(table.log_prob(at, rows) - truth)
    off[~(truth > truth.max(axis=1, keepdims=True) - 20)] = 0.0
    n_sharp = int(np.sum(~(off.max(axis=1) < 1e-2)))
    if n_sharp:
        warn_user(
            f"saving: {n_sharp} of {len(part)} emission functions are sharper than the table of "
            f"{reach.size} points that replaces them in the file; the curve itself is saved "
            "exactly, but updates and audits of the opened one will be off",
            DynaestiWarning,
        )
    return table


def _read_emission(header: Header, arrays: Arrays) -> Emissions:
    columns = {key: arrays[f"{header['name']}.{key}"] for key in header["columns"]}
    family: Emissions = FAMILIES[header["kind"]](**columns, **header["rest"])
    return family
