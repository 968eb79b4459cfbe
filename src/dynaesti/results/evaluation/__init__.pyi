from .baselines import constant as constant, elo as elo, item_and_person as item_and_person
from .comparison import against_baselines as against_baselines, compare as compare, held_out as held_out
from .residuals import Residuals as Residuals, item_fit as item_fit, person_fit as person_fit
from .scores import Forecast as Forecast, Scores as Scores, auc as auc, binary_scores as binary_scores, calibration as calibration, imv as imv, person_error as person_error, pooled as pooled, scores_of as scores_of
from .splits import rolling as rolling, split as split
from .static_comparison import StaticComparison as StaticComparison, compare_with_static as compare_with_static, dynamic_against_static as dynamic_against_static, starting_items as starting_items, static_comparison_of as static_comparison_of
