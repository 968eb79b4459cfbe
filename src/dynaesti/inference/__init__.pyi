from .audit.audit import Audit as Audit, audit_curve as audit_curve
from .cross_validation import cross_validate as cross_validate
from .grafting import EPProblem as EPProblem, EPSettings as EPSettings, MomentMatcher as MomentMatcher, graft as graft
from .leave_one_out import LeaveOneOut as LeaveOneOut, leave_one_out_densities as leave_one_out_densities
from .many_curves import CurveData as CurveData, GraftedCurves as GraftedCurves, graft_in_chunks as graft_in_chunks, graft_many as graft_many, group_by_curve as group_by_curve
from .marginals import HERMITE_WEIGHTS as HERMITE_WEIGHTS, HERMITE_X as HERMITE_X, Marginals as Marginals, TRUSTED as TRUSTED, check_level as check_level
from .moments.adaptive import DONE as DONE, adaptive_moments as adaptive_moments
from .moments.match import CACHE_SIZE as CACHE_SIZE, match_sites_cached as match_sites_cached
from .moments.on_grid import gaussian_recurrence as gaussian_recurrence, summed_moments as summed_moments
from .moments.table import HALF_AGREE as HALF_AGREE, LogLikelihoodTable as LogLikelihoodTable, MOST_NODES as MOST_NODES, WIDTH as WIDTH, lagrange as lagrange, likelihood_table as likelihood_table
from .observations import Observations as Observations, observe as observe, rough_scale as rough_scale, unit_scale as unit_scale
from .online.curve import OnlineCurve as OnlineCurve, start_online as start_online
from .predict import predict_marginals as predict_marginals
from .second_order import second_order_corrected as second_order_corrected
from .single_curve import GraftedCurve as GraftedCurve, full_cavity_and_tilted as full_cavity_and_tilted, graft_kernels as graft_kernels, is_one_number as is_one_number
from .sites import EPResult as EPResult, Moments as Moments, NaturalGaussian as NaturalGaussian, SiteFactors as SiteFactors, SiteLayout as SiteLayout
from .solvers.choice import build_batched_solver as build_batched_solver, build_posterior as build_posterior, depends_on_span as depends_on_span
from .solvers.contract import SOLVERS as SOLVERS, Solver as Solver, SolverName as SolverName
from .solvers.level_matern32 import level_matern32_form as level_matern32_form
