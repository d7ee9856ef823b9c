"""What a journal, Zenodo, CODECHECK and Binder read."""

import json
import os
import re
import subprocess
import zipfile
from pathlib import Path

import jsonschema
import pytest
import yaml

from workflow import ROOT
from workflow.environment import environment
from workflow.manifest import codecheck, makers, manifest

CITATION = json.loads(
    json.dumps(yaml.safe_load((ROOT / "CITATION.cff").read_text()), default=str)  # dates as text
)


def test_citation_follows_the_schema():
    schema = json.loads((ROOT / "tests" / "citation-file-format-1.2.0.json").read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    validator.validate(CITATION)
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(CITATION | {"authors": []})


def test_codecheck_lists_every_figure_and_table():
    assert (ROOT / "codecheck.yml").read_text() == codecheck(), "python -m workflow manifest"
    listed = {row["file"] for row in manifest()}
    tracked = subprocess.run(
        ["git", "ls-files", "figures", "data/*.csv"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    assert set(tracked) <= listed  # nothing tracked, if this is no git repository
    assert all((ROOT / file).exists() for file in listed)


def test_codecheck_is_what_its_specification_asks_of_authors():
    """By the rules of CODECHECK's specification 2.0; the rest is for who checks."""
    text = (ROOT / "codecheck.yml").read_text(encoding="utf-8")
    config = yaml.safe_load(text)
    assert text.startswith("---\n")
    assert config["version"] == "https://codecheck.org.uk/spec/config/2.0/"
    assert config["paper"]["title"]
    assert all(author["name"] for author in config["paper"]["authors"])
    assert config["paper"]["reference"].startswith("https://doi.org/10.")
    assert all(row["file"] and row["comment"] for row in config["manifest"])
    assert not any(Path(row["file"]).is_absolute() for row in config["manifest"])
    assert not re.search("FIXME|TODO|XXXXX", text)


def test_every_figure_comes_from_the_notebook_that_the_manifest_names():
    """By the notebooks' own outputs: the cell that saves a figure shows it."""
    for name, maker in makers().items():
        notebook = json.loads((ROOT / "notebooks" / f"{maker.notebook}.ipynb").read_text())
        outputs = notebook["cells"][maker.cell]["outputs"]
        assert any("image/png" in output.get("data", {}) for output in outputs), name


def test_the_manifest_is_regenerated():
    """By the run of all notebooks that `make test` just made, as `make reproduce` makes it."""
    fresh = os.environ.get("FIRMLIB_FRESH")
    if fresh is None:
        pytest.skip("needs the outputs of nbval's run: make test")
    files = [row["file"] for row in manifest() if row["comment"].startswith("made by")]
    assert files
    assert [file for file in files if not Path(fresh, file).exists()] == []


def test_binder_has_the_same_environment():
    binder = (ROOT / ".binder" / "environment.yml").read_text()
    assert binder == environment("..")
    assert binder.replace("--editable ..", "--editable .") == environment()


def test_archive_is_the_same_bytes_with_the_mode_of_each_file(tmp_path):
    for name in ("CITATION.cff", "Makefile", "requirements.lock"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "run").write_text("#!/bin/sh\n")
    (tmp_path / "run").chmod(0o755)
    user = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], [*user, "commit", "-qm", "a"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    archive = tmp_path / "build" / f"firmlib-{CITATION['version']}.zip"
    made = []
    for zone in ("UTC", "Asia/Tokyo"):
        subprocess.run(["make", "archive"], cwd=tmp_path, env=os.environ | {"TZ": zone}, check=True)
        made.append(archive.read_bytes())
        (tmp_path / "run").write_text("changed, not committed")
    assert made[0] == made[1]
    with zipfile.ZipFile(archive) as zipped:
        files = {info.filename.split("/", 1)[1]: info for info in zipped.infolist()}
        assert zipped.read(files["run"]) == b"#!/bin/sh\n"
        assert files["run"].external_attr >> 16 == 0o100755
        assert zipped.read(files["requirements.lock"]) == (ROOT / "requirements.lock").read_bytes()


def test_the_container_recipe():
    """What can be said of it where no image can be pulled."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    known = {"FROM", "RUN", "USER", "WORKDIR", "COPY", "CMD"}
    assert {line[0] for line in lines} <= known
    assert lines[0] == ["FROM", "python:3.13-slim-bookworm"]  # a tag, not latest
    assert "3.13" in re.search("PYTHONS := (.*)", (ROOT / "Makefile").read_text())[1].split()
    copied = [name for line in lines if line[0] == "COPY" for name in line[2:-1]]
    assert copied
    assert all((ROOT / name).exists() for name in copied)
    assert ["USER", "1000"] in lines  # not root
    assert json.loads(" ".join(lines[-1][1:])) == ["make", "reproduce"]
