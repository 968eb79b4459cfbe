from .designs import ASSIGNMENTS as ASSIGNMENTS
from .designs import PLANNED_MODELS as PLANNED_MODELS
from .designs import Design as Design
from .study_plan import Plan as Plan
from .study_plan import plan as plan
