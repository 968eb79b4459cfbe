from .checks import CautionKind as CautionKind, DataReport as DataReport, check_responses as check_responses
from .columns import find_column as find_column, parse_labels as parse_labels, parse_numbers as parse_numbers
from .dates import TimeOptions as TimeOptions, parse_times as parse_times
from .frames import KINDS as KINDS, frame_kind as frame_kind, make_frame as make_frame
from .item_direction import first_component as first_component, standardised as standardised
from .labels import Labels as Labels, as_labels as as_labels, as_list as as_list, count_noun as count_noun, encode as encode, index_of as index_of, label_text as label_text, try_index_of as try_index_of
from .new_people import describe_new_people as describe_new_people, warn_already_added as warn_already_added, warn_new_people as warn_new_people
from .parse import ParsedColumns as ParsedColumns, find_column_roles as find_column_roles, parse_columns as parse_columns
from .read_log import ReadLog as ReadLog
from .readers.files import read_pieces as read_pieces, rows_about as rows_about
from .readers.read import read_table as read_table
from .readers.table import Table as Table
from .responses import Responses as Responses, check_saved_responses as check_saved_responses
from .time_axis import DAY_NS as DAY_NS, TimeAxis as TimeAxis, UNSTATED as UNSTATED, check_span as check_span, parse_iso as parse_iso, read_axis as read_axis, read_times as read_times
