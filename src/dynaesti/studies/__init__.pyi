from .base import Options as Options
from .golf import HOW_TO_GET as HOW_TO_GET
from .run import run_study as run_study
