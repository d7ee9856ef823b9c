"""Mutants of the library find their place; whether they are noticed is for `make mutants`."""

import pytest

from tests import mutants_rooms
from tests.mutants_core import MUTANTS, changed

ROOMS = [mutant for mutants in mutants_rooms.MUTANTS.values() for mutant in mutants]


@pytest.mark.parametrize(
    "mutant", [*MUTANTS, *ROOMS], ids=lambda mutant: f"{mutant[0]}: {mutant[1]}"
)
def test_mutants_find_their_place(mutant):
    source = changed(*mutant)
    compile(source, mutant[0], "exec")
