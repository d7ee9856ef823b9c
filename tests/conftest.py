"""What the tests share."""

import os
import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import Phase, settings

# Begin with those that start other programs, so that no core is left alone with one at the end.
LONGEST = ("test_workflow", "test_cluster", "test_sweep", "test_warm")


def pytest_collection_modifyitems(items):
    """Put the longest tests first; all others stay in order."""
    items.sort(key=lambda item: item.path.stem not in LONGEST)


# The same examples each time, so that a change is red because of itself; the long one explores.
settings.register_profile("short", deadline=None, max_examples=50, derandomize=True)
few = {"max_examples": 5, "derandomize": True, "database": None, "phases": [Phase.generate]}
settings.register_profile("few", deadline=None, **few)  # a failure is not made smaller
settings.register_profile("long", deadline=None, max_examples=500, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def rng():
    """The same random numbers in every run."""
    return np.random.default_rng(3)


@pytest.fixture
def output(tmp_path, monkeypatch):
    """Where firmlib.compendium writes to."""
    monkeypatch.setenv("FIRMLIB_OUTPUT", str(tmp_path))
    return tmp_path


@pytest.fixture(params=[0, 500, 2**25], ids=["pieces", "half", "tables"])
def storage(request, monkeypatch):
    """Of the weights of words none, some or all are stored as tables."""
    monkeypatch.setattr("firmlib.strings.weights.DENSE_ENTRIES", request.param)


class Tensor:
    """As much of a torch tensor as is needed: one that is part of a graph, to be detached first."""

    def __init__(self, values):
        self.values, self.dtype = values, values.dtype
        self.shape, self.ndim = values.shape, values.ndim

    def __array__(self, *args, **kwargs):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad")

    def __len__(self):
        return len(self.values)

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.values


def kernel_by_definition(
    X, Y, degree, shift, shift_weights="rase", letters=4, strands=lambda Y: [Y]
):
    """The weighted degree kernel of codes with shifts, letter by letter; unknown ones never match.

    strands : returns what Y may be read as, over which the kernel is averaged.
    """

    def texts(codes, unknown):
        return ["".join(chr(65 + c) if c < letters else unknown for c in row) for row in codes]

    def kernel(x, y):
        total = 0.0
        for d in range(1, degree + 1):
            beta = 2 * (degree - d + 1) / (degree * (degree + 1))
            for i in range(len(x) - d + 1):
                total += beta * (x[i : i + d] == y[i : i + d])
                for s in range(1, min(shift, len(x) - d - i) + 1):
                    delta = 1 / (2 * (s + 1)) if shift_weights == "rase" else 1 / (2 * s)
                    total += beta * delta * (x[i + s : i + s + d] == y[i : i + d])
                    total += beta * delta * (x[i : i + d] == y[i + s : i + s + d])
        return total

    tables = [[[kernel(x, y) for y in texts(Z, "!")] for x in texts(X, "?")] for Z in strands(Y)]
    return np.mean(tables, axis=0)


def random_background(rng, order, length, alphabet=None, zeros=False):
    """A chain with other transitions at each position, and perhaps letters that never follow."""
    from firmlib.strings import DNA, Background  # slow to import; few need it

    a = len(alphabet or DNA)
    initial = rng.dirichlet(np.ones(a**order)) if order else np.ones(1)
    transition = rng.dirichlet(np.ones(a), size=(length - order, a**order))
    if zeros:
        initial[initial < initial.max() / 3] = 0
        transition[transition < transition.max(axis=2, keepdims=True) / 3] = 0
        transition[1:2] = np.eye(a)[2 % a]  # one letter that is certain
    initial, transition = (
        initial / initial.sum(),
        transition / transition.sum(axis=2, keepdims=True),
    )
    return Background(initial, transition, alphabet or DNA)


BACKGROUNDS = {  # name to a function of rng and length
    "uniform": lambda rng, length: None,
    **{f"order {D}": lambda rng, L, D=D: random_background(rng, D, L) for D in range(4)},
    **{
        f"order {D} with zeros": lambda rng, L, D=D: random_background(rng, D, L, zeros=True)
        for D in range(4)
    },
}


def all_sequences(length, letters=4):
    """The codes of all sequences of a length, in the order of their numbers."""
    return np.array(list(product(range(letters), repeat=length)), dtype=np.uint8)
