"""Every mutant of the library has its place; `make mutants` shows that tests notice it."""

import pytest

from tests.mutants_library import MUTANTS, changed
from workflow import ROOT


@pytest.mark.parametrize("tests", MUTANTS)
def test_mutants_find_their_place(tests):
    for word in tests.partition(" -k ")[0].split():
        assert (ROOT / "tests" / f"test_{word}.py").exists()
    for mutant in MUTANTS[tests]:
        compile(changed(*mutant), mutant[0], "exec")
