from .base import Options as Options
from .golf import how_to_get_scorecards as how_to_get_scorecards
from .run import run_study as run_study
