"""Scalars that notebooks record for sweeps."""

import json

import numpy as np
import pytest

from firmlib.compendium import metrics


def test_scalars_are_shown_and_written_and_replaced_by_name(output):
    shown = metrics.record(rank=np.int64(3), auc=np.float64(1 / 3), found=np.bool_(True), how="w")
    assert repr(shown) == "rank   3\nauc    0.3333\nfound  True\nhow    w"
    metrics.record(rank=1, signal=float("nan"))
    assert json.loads((output / "metrics.json").read_text()) == {
        "rank": 1,
        "auc": 1 / 3,
        "found": True,
        "how": "w",
        "signal": None,
    }


@pytest.mark.parametrize("value", [[1], None, np.ones(2), {"a": 1}])
def test_what_is_no_scalar_is_refused(output, value):
    with pytest.raises(ValueError, match=r"rank=.* must be a number"):
        metrics.record(rank=value)


def test_nothing_to_record_is_refused(output):
    with pytest.raises(ValueError, match="nothing to record"):
        metrics.record()
