from .acceleration import AndersonAcceleration as AndersonAcceleration, anderson_step as anderson_step
from .archive import Arrays as Arrays, Header as Header, check_array as check_array, is_number as is_number, open_archive as open_archive, read_archive as read_archive, require as require, save_archive as save_archive, write_archive as write_archive
from .arrays import Array as Array, Bools as Bools, Ints as Ints
from .atomic_files import atomic_path as atomic_path, atomic_paths as atomic_paths, remove_partial_files as remove_partial_files, umask as umask
from .compiled import jit as jit
from .folder import Folder as Folder, is_address as is_address
from .linalg import dot as dot, symmetric_root as symmetric_root
from .locks import LOCK_TIMEOUT as LOCK_TIMEOUT, exclusive_lock as exclusive_lock
from .numerics import softmax as softmax
from .parallel import chunks as chunks, run_in_threads as run_in_threads, single_blas_thread as single_blas_thread
from .quadrature import gauss_hermite as gauss_hermite
from .ragged import Ragged as Ragged, last_of_rows as last_of_rows, row_of_entries as row_of_entries, starts_of as starts_of, starts_of_runs as starts_of_runs, take_rows as take_rows
from .run_folder import ABILITIES as ABILITIES, CHECKPOINT as CHECKPOINT, FIT_NAME as FIT_NAME, LOCK as LOCK, PARTS as PARTS, STATIC_NAME as STATIC_NAME
from .validation import as_numbers as as_numbers, as_rng as as_rng, as_vector as as_vector, check_size as check_size, concatenate_rows as concatenate_rows, finite_number as finite_number, positive_number as positive_number, raise_where as raise_where, whole_number as whole_number
from .workspace import Workspace as Workspace
