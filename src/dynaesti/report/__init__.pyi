from .page import write_report as write_report
from .words import told_findings as told_findings
