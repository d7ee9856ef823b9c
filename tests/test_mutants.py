"""Every mutant of the library has its place; `make mutants` shows that tests notice it."""

from tests.mutants_library import MUTANTS, lost
from workflow import ROOT


def test_mutants_find_their_place():
    assert not lost()


def test_mutants_name_tests_that_exist():
    for tests in MUTANTS:
        for word in tests.partition(" -k ")[0].split():
            assert (ROOT / "tests" / f"test_{word}.py").exists()
