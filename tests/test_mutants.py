"""Mutants of the library find their place; whether they are noticed is for `make mutants`."""

import pytest

from tests import mutants_rooms, mutants_strings
from tests.mutants_core import MUTANTS, changed

ROOMS = [mutant for mutants in mutants_rooms.MUTANTS.values() for mutant in mutants]
ALL = [*MUTANTS, *ROOMS, *mutants_strings.MUTANTS]


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: f"{mutant[0]}: {mutant[1]}")
def test_mutants_find_their_place(mutant):
    source = changed(*mutant)
    compile(source, mutant[0], "exec")
