from . import simulate as simulate
from .emissions.bank_responses import BankResponses as BankResponses
from .emissions.base import Emissions as Emissions
from .emissions.families import Bernoulli as Bernoulli, Binomial as Binomial, Gaussian as Gaussian, NegativeBinomial as NegativeBinomial, Ordinal as Ordinal, Poisson as Poisson, StudentT as StudentT
from .emissions.item_responses import ItemResponses as ItemResponses
from .emissions.mixed import FAMILIES as FAMILIES, as_emissions as as_emissions, check_evidence as check_evidence, emission_blocks as emission_blocks
from .emissions.tables import Functions as Functions, Table as Table
from .items.bank import AbilityScale as AbilityScale, FEW_LOCATION_SD as FEW_LOCATION_SD, FEW_LOG_SCALE_SD as FEW_LOG_SCALE_SD, HYPER_ITEMS as HYPER_ITEMS, ItemBank as ItemBank, ItemBlock as ItemBlock, STEEPEST as STEEPEST
from .items.base import ContinuousItemModel as ContinuousItemModel, ItemModel as ItemModel, STEP as STEP, log_odds as log_odds
from .items.continuous import GaussianItem as GaussianItem, PoissonItem as PoissonItem
from .items.custom import CustomItemModel as CustomItemModel, MOST_VALUES as MOST_VALUES
from .items.pivot import PivotPartialCredit as PivotPartialCredit
from .items.priors import ItemPrior as ItemPrior
from .items.registry import MODELS as MODELS, item_model as item_model
from .kernels import BandwidthKernel as BandwidthKernel, BaseKernel as BaseKernel, DEFAULT_KERNEL as DEFAULT_KERNEL, Kernel as Kernel, Level as Level, METHODS as METHODS, Matern as Matern, Matern12 as Matern12, Matern32 as Matern32, Matern52 as Matern52, Periodic as Periodic, RBF as RBF, Trend as Trend, Wiener as Wiener, as_kernel as as_kernel, kernel_header as kernel_header, named_kernel as named_kernel, read_kernel as read_kernel
from .links import BUILT_IN as BUILT_IN, Link as Link, LinkedPoints as LinkedPoints, POSITIVE as POSITIVE, REAL as REAL, UNIT as UNIT, as_link as as_link
from .simulate import GRID as GRID, SimulationModel as SimulationModel, curves as curves, numbered_labels as numbered_labels, responses as responses
