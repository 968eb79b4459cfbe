"""What an E-step says of a cohort, exactly."""

from dynaesti.estimation.grid import ability_grid
from dynaesti.estimation.people import EStepRequest


def cohort_at_weights(people, bank, priors):
    """Statistics of the cohort at the population's weights of these people, and the evidence."""
    grid = ability_grid(bank)
    request = EStepRequest(1e-11, with_counts=False, with_cohort_information=True)
    for _ in range(2):
        found = people.e_step(bank, grid, priors, request)
    return found.cohort, priors.log_evidence(found.log_evidence)
