from .page import write_report as write_report
from .words import findings as findings
