from .page import title_of as title_of
from .page import write_report as write_report
from .words import findings as findings
from .words import points_of_attention as points_of_attention
