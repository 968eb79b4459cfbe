"""Choices that the command line offers."""

from dynaesti.cli import options
from dynaesti.model.kernels import NAMED_KERNELS


def test_choices_on_the_command_line_are_those_of_the_library():
    assert set(options.KERNELS) == set(NAMED_KERNELS)
