from . import evaluation as evaluation
from .abilities import Change as Change
from .curve import Curve as Curve, from_components as from_components, open_curve as open_curve, warn_if_unconverged as warn_if_unconverged
from .curves import Curves as Curves, told_many as told_many
from .evaluation.comparison import against_baselines as against_baselines
from .evaluation.residuals import item_fit as item_fit
from .evaluation.splits import rolling as rolling, split as split
from .evaluation.static_comparison import StaticComparison as StaticComparison, compare_with_static as compare_with_static, starting_items as starting_items, static_comparison_of as static_comparison_of
from .fit import Fit as Fit
from .fit_base import FitBase as FitBase
from .frames import band_columns as band_columns
from .io.fit_file import common_header as common_header, read_common as read_common, read_fit as read_fit
from .orientation import is_positively_oriented as is_positively_oriented, reflect_covariance as reflect_covariance, reflect_scale_covariance as reflect_scale_covariance
from .source import ResponseSource as ResponseSource, ResponsesInMemory as ResponsesInMemory
from .updates import add_people as add_people, fit_new_people as fit_new_people, read_new_responses as read_new_responses, repeated as repeated, responses_of_people as responses_of_people
