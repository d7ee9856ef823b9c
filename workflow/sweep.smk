"""Every point of a sweep: a notebook executed with its parameters into points/ and its hash."""

import json
import sys
from pathlib import Path

CODE = Path(workflow.basedir).parent
INDEX = json.loads(Path("index.json").read_text())
NOTEBOOK, POINTS = INDEX["notebook"], INDEX["points"]


rule all:
    input:
        expand("points/{point}/notebooks/{notebook}.ipynb", point=POINTS, notebook=NOTEBOOK),


rule point:
    input:
        source=f"sources/{NOTEBOOK}.ipynb",
        library="sources/firmlib.sha256",
    output:
        f"points/{{point}}/notebooks/{NOTEBOOK}.ipynb",
    params:
        folder="points/{point}",
    shell:
        "PYTHONPATH={CODE:q} {sys.executable:q} -m workflow.warm {input.source:q} {params.folder:q}"
        " index.json {wildcards.point}"
