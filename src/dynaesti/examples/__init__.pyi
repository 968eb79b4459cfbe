from .classroom import platform as platform
from .classroom import quizzes as quizzes
from .languages import language_models as language_models
from .people import diary as diary
from .people import reading_study as reading_study
from .politics import polls as polls
from .politics import roll_calls as roll_calls
from .sport import golf as golf
