from .page import write_report as write_report
from .words import findings as findings, points_of_attention as points_of_attention
