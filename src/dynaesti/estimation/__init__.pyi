from .checkpoint import Checkpoint as Checkpoint, fingerprint as fingerprint, in_full as in_full
from .coding import ResponseCoding as ResponseCoding, build_coding as build_coding, index_of_items as index_of_items, resolve_item_models as resolve_item_models
from .e_step import EP_TOLERANCE_FINAL as EP_TOLERANCE_FINAL, EStep as EStep, EStepPosterior as EStepPosterior, kernel_weights as kernel_weights, leave_one_out_abilities as leave_one_out_abilities
from .em import EMSettings as EMSettings, IterationRecord as IterationRecord
from .fitted import FittedModel as FittedModel
from .grid import REACH as REACH, ability_grid as ability_grid, check_reach as check_reach, tabulate_items as tabulate_items
from .hyper_grid import HyperGrid as HyperGrid, curve_grid as curve_grid, refine_grid as refine_grid
from .new_items import NEW_ITEMS_HINT as NEW_ITEMS_HINT, NewItemFit as NewItemFit, extend_models as extend_models, find_new_items as find_new_items
from .people import CheckpointArrays as CheckpointArrays, EStepResult as EStepResult, People as People, PeopleInMemory as PeopleInMemory, StartingSites as StartingSites, e_step_over as e_step_over, sum_e_steps as sum_e_steps
from .population import PriorMixture as PriorMixture, estimate_population_weights as estimate_population_weights
from .progress import OnIteration as OnIteration, ProgressLine as ProgressLine
from .response_counts import ResponseCounts as ResponseCounts, count_responses as count_responses
from .scale import Scale as Scale, reported_scale as reported_scale
from .schedule import EMSchedule as EMSchedule, Estimate as Estimate
from .site_layout import PeopleSites as PeopleSites, build_people_sites as build_people_sites
from .standard_errors import ItemInformation as ItemInformation, collect_information as collect_information, likelihood_gradients as likelihood_gradients, sample_bank as sample_bank
from .start_values import build_bank as build_bank, given_items as given_items, initial_signed_slopes as initial_signed_slopes
from .subsample import PersonSummary as PersonSummary
