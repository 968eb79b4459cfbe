"""The grid of abilities.

Fine enough for the steepest item, wide enough for the farthest person; item likelihoods tabulated
on it.
"""

from __future__ import annotations

import numpy as np

from dynaesti.core import Array
from dynaesti.errors import InputError, option
from dynaesti.inference import LogLikelihoodTable, likelihood_table
from dynaesti.model import ItemBank

REACH = (
    8.0,
    16.0,
    32.0,
    64.0,
)  # of the ability grid, in standard deviations: wider ones where someone needs them
ROOM = 1.5  # kept free between the farthest ability (three sds included) and the grid's end
CELLS = (20, 40, 80, 160)  # grid steps to a standard deviation
# more rows than this may have wider cells: else they alone would fill the memory
MANY_ROWS = 100_000
COARSE = 10
RESOLVED = 0.35  # log units that the steepest row may change by within a cell


def tabulate_items(bank: ItemBank, z: Array) -> LogLikelihoodTable:
    """The rows of all items on a grid of abilities, ready for grafting."""
    rows = bank.log_likelihood(z)
    bank.check_custom_rows(rows, z)
    return likelihood_table(float(z[0]), float(z[1] - z[0]), rows)


def ability_grid(bank: ItemBank, farthest: float = 0.0) -> Array:
    """An even grid fine enough for the steepest item, and wide enough for the farthest ability."""
    steep = bank.steepness()
    allowed = CELLS if bank.row_count <= MANY_ROWS else (COARSE, *CELLS)
    cells = next((c for c in allowed if steep / c <= RESOLVED), CELLS[-1])
    reach = next((r for r in REACH if farthest + ROOM <= r), REACH[-1])
    return np.linspace(-reach, reach, int(2 * reach * cells) + 1)


def check_reach(farthest: float) -> None:
    """Refuse abilities so far out that no grid of rows reaches them.

    What lies beyond would be made up.
    """
    if not farthest + ROOM <= REACH[-1]:
        raise InputError(
            f"abilities reach {farthest:.3g} standard deviations from the population's mean, "
            f"beyond the {REACH[-1] - ROOM:g} "
            "that can be computed with; are anchors and answers on one scale, and the responses "
            "coded the right way round?"
        )


def check_probability(bank: ItemBank, log_evidence: float, answers: int) -> None:
    """Refuse a log probability above 0 of answers that have probabilities.

    The numbers have failed, and nothing told of them is right.
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


EVIDENCE_SLACK = 1e-3  # nats an answer that grafting may be off by
