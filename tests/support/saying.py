"""What is said: by warnings, and by the command line."""

import warnings

import dynaesti as dy
from dynaesti.cli.dispatch import main


def told(task, kind=dy.HealthWarning):
    """The warnings of a kind that a task raises, in one text, and its result."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = task()
    return " ".join(str(w.message) for w in seen if issubclass(w.category, kind)), result


def spoken(capsys, *words):
    """Exit code, standard output and error of a command line."""
    code = main([str(word) for word in words])
    out = capsys.readouterr()
    return code, out.out, out.err
