"""Read a sweep's grid file and check it against its notebook, before any kernel starts."""

import ast
import hashlib
import itertools
import json
import math
from numbers import Real
from pathlib import Path

import pandas as pd
import papermill
import yaml

from workflow.run import plain

KEYS = {"notebook": str, "parameters": dict | list, "seeds": int, "skip": list, "metrics": list}
TYPES = {"int": int, "float": float, "bool": bool, "str": str}  # all others are lists
MOST = 10_000  # points, and values of a parameter
RANGES = "{range: [low, high]}, {range: [low, high, step]} or {log_range: [low, high, how many]}"


class _Loader(yaml.SafeLoader):
    """YAML in which a key that occurs twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise ValueError(f"{key!r} occurs twice{node.start_mark}")
        return super().construct_mapping(node, deep)


class Grid:
    """What a grid file asks for: `notebook`, `points` by their short hash, `metrics`.

    The first thing that is wrong with the file is raised as a ValueError that names it.
    """

    def __init__(self, path: Path, notebooks: Path) -> None:
        self.path = path
        try:
            self._read(yaml.load(path.read_text(encoding="utf-8"), _Loader), notebooks)
        except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
            raise ValueError(f"{path}: {' '.join(str(error).split())}") from None

    def _read(self, content: object, notebooks: Path) -> None:
        if not isinstance(content, dict) or not content.keys() <= KEYS.keys():
            raise ValueError(f"expected a mapping with some of the keys {', '.join(KEYS)}")
        for key, value in content.items():
            if not isinstance(value, KEYS[key]):
                raise ValueError(f"{key}={value!r} must be {KEYS[key]}")
        names = sorted(path.stem for path in notebooks.glob("*.ipynb"))
        if content.get("notebook") not in names:
            raise ValueError(f"no notebook {content.get('notebook')!r}; there are {names}")
        self.notebook = notebooks / f"{content['notebook']}.ipynb"
        self.known = papermill.inspect_notebook(plain(self.notebook))
        self.metrics = content.get("metrics", [])
        for name in self.metrics:
            if f"{name}=" not in self.notebook.read_text():
                raise ValueError(f"metrics: {self.notebook.stem} never records {name!r}")
        given = content.get("parameters", {})
        seeds = {"seeds": content["seeds"]} if "seeds" in content else {}
        blocks = [self._block(b, seeds) for b in (given if isinstance(given, list) else [given])]
        count = sum(math.prod(map(len, block.values())) for block in blocks)
        if count > MOST:
            raise ValueError(f"{count} points; split the file, a sweep has at most {MOST}")
        self.points = self._points(blocks, content.get("skip", []))
        if not self.points:
            raise ValueError("skip: no point is left")

    def _block(self, block: object, seeds: dict[str, int]) -> dict[str, list]:
        """Return the values of each parameter, typed; seeds: 3 is short for seed: [0, 1, 2]."""
        if not isinstance(block, dict):
            raise ValueError(f"parameters: {block!r} must be a mapping, as in 'degree: [6, 8]'")
        block = seeds | block
        if "seeds" in block:
            if "seed" in block:
                raise ValueError("seeds and the parameter seed exclude each other")
            block["seed"] = {"range": [0, block.pop("seeds") - 1]}
        return {name: self._values(name, value) for name, value in block.items()}

    def _values(self, name: str, value: object) -> list:
        """Return all values of one parameter: a list, a range, a log range or a single one."""
        if name not in self.known:
            names = ", ".join(self.known)
            raise ValueError(f"unknown parameter {name!r}; {self.notebook.stem} has {names}")
        is_list = self.known[name]["inferred_type_name"] not in TYPES
        if isinstance(value, dict):
            value = self._range(name, value)
        elif not isinstance(value, list) or (is_list and not any(type(v) is list for v in value)):
            value = [value]  # the same at every point
        elif not value:
            raise ValueError(f"{name}=[] is empty, expected at least one value")
        return [self._typed(name, entry) for entry in value]

    def _range(self, name: str, value: dict) -> list:
        """Return the values of a range, both ends included."""
        match [*value.items()]:
            case [("range", [Real() as low, Real() as high, *rest])] if len(rest) < 2:
                [step] = rest or [1]
                if isinstance(step, Real) and step > 0 and 0 <= (high - low) / step < MOST:
                    count = math.floor((high - low) / step + 1e-9) + 1
                    return [round(low + i * step, 12) for i in range(count)]
            case [("log_range", [Real() as low, Real() as high, int() as count])]:
                if 0 < low < high < math.inf and 1 < count <= MOST:
                    values = [low * (high / low) ** (i / (count - 1)) for i in range(count)]
                    if self.known[name]["inferred_type_name"] == "int":
                        return sorted({round(v) for v in values})
                    return [float(f"{v:.6g}") for v in values]
        raise ValueError(f"{name}={value!r} must be {RANGES}, with at most {MOST} values")

    def _typed(self, name: str, value: object) -> object:
        """Return the value as the notebook's type; an int is accepted as a float."""
        kind = self.known[name]["inferred_type_name"]
        expected = TYPES.get(kind, list)
        if expected is float and type(value) is int:
            value = float(value)
        if type(value) is not expected or (expected is float and not math.isfinite(value)):
            hint = "; YAML reads 1e-3 as text, write 1.0e-3" * (expected is float)
            raise ValueError(f"{name}={value!r} must be a finite {kind}{hint}")
        return value

    def _points(self, blocks: list[dict[str, list]], skip: list) -> dict[str, dict]:
        """Return the parameters of each point under its short hash, in the order of the file.

        The hash covers all parameters, defaults included, so that a point keeps its name when the
        grid grows by a parameter.
        """
        default = {name: ast.literal_eval(p["default"]) for name, p in self.known.items()}
        named = [name for name in self.known if any(name in block for block in blocks)]
        every = [
            default | dict(zip(block, values, strict=True))
            for block in blocks
            for values in itertools.product(*block.values())
        ]
        frame = pd.DataFrame(every)
        for rule in skip:
            try:
                frame = frame[~frame.eval(str(rule), engine="python").astype(bool)]
            except Exception as error:  # of whatever kind pandas raises
                raise ValueError(f"skip: {rule!r}: {error}") from None
        points = {}
        for point in (every[i] for i in frame.index):
            text = json.dumps([self.notebook.stem, point], sort_keys=True)
            short = hashlib.sha256(text.encode()).hexdigest()[:10]
            points[short] = {name: point[name] for name in named}
        return points
