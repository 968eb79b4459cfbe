"""The grid of abilities, and item likelihoods tabulated on it.

It is fine enough for the steepest item and wide enough for the most extreme ability.
"""

from __future__ import annotations

import numpy as np

from dynaesti.core import Array
from dynaesti.errors import InputError, option
from dynaesti.inference import LogLikelihoodTable, likelihood_table
from dynaesti.model import ItemBank

# half widths of the ability grid, in standard deviations: the first that covers everyone is taken
REACH = (8.0, 16.0, 32.0, 64.0)
ROOM = 1.5  # margin between the most extreme ability (three sds included) and the grid's end
CELLS = (20, 40, 80, 160)  # grid steps in a standard deviation
# more rows than this may have wider cells: otherwise the table would fill the memory
MANY_ROWS = 100_000
COARSE = 10
RESOLVED = 0.35  # largest change of the steepest log-likelihood row within a cell


def tabulate_items(bank: ItemBank, z: Array) -> LogLikelihoodTable:
    """The log-likelihood rows of all items on a grid of abilities, for moment matching."""
    rows = bank.log_likelihood(z)
    bank.check_custom_rows(rows, z)
    return likelihood_table(float(z[0]), float(z[1] - z[0]), rows)


def ability_grid(bank: ItemBank, farthest: float = 0.0) -> Array:
    """An even grid, fine enough for the steepest item and covering ± `farthest`."""
    steep = bank.steepness()
    allowed = CELLS if bank.row_count <= MANY_ROWS else (COARSE, *CELLS)
    cells = next((c for c in allowed if steep / c <= RESOLVED), CELLS[-1])
    reach = next((r for r in REACH if farthest + ROOM <= r), REACH[-1])
    return np.linspace(-reach, reach, int(2 * reach * cells) + 1)


def check_reach(farthest: float) -> None:
    """Refuse abilities so extreme that the widest grid does not cover them.

    Likelihoods beyond the grid would be extrapolated.
    """
    if not farthest + ROOM <= REACH[-1]:
        raise InputError(
            f"abilities reach {farthest:.3g} standard deviations from the population's mean, "
            f"beyond the {REACH[-1] - ROOM:g} "
            "that can be computed with; are anchors and answers on one scale, and the responses "
            "coded the right way round?"
        )


def check_probability(bank: ItemBank, log_evidence: float, answers: int) -> None:
    """Refuse a log probability above 0 of responses that have probabilities.

    It shows that the arithmetic has failed, so that no other result is right either.
    """
    discrete = all(block.model.is_probability for block in bank.blocks)
    if not np.isfinite(log_evidence) or (
        discrete and log_evidence > EVIDENCE_SLACK * (1 + answers)
    ):
        raise InputError(
            f"the log probability of these {answers:,} answers came out as {log_evidence:+.6g}, "
            f"which is impossible: items "
            "are steeper, or lie farther off, than can be computed with; use "
            f"{option('priors', 'weak')}, and look at `fixed` and the responses"
        )


EVIDENCE_SLACK = 1e-3  # error of the log evidence by grafting, in nats for each response
