"""Read a sweep's grid file and check it against its notebook, before any kernel starts."""

import ast
import contextlib
import hashlib
import itertools
import json
import math
from pathlib import Path

import papermill
import yaml

from workflow.engine import plain

KEYS = {"notebook", "parameters", "seeds", "skip", "metrics"}
KINDS = {"int": int, "float": float, "bool": bool, "str": str}  # others are lists
ALLOWED = (
    *(ast.Expression, ast.BoolOp, ast.boolop, ast.UnaryOp, ast.unaryop, ast.BinOp),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod),  # no powers, which grow too fast
    *(ast.Compare, ast.cmpop, ast.Name, ast.Load, ast.Constant),
)
MOST = 1_000_000  # points, and values of a parameter


class Grid:
    """What a grid file asks for: `notebook`, `points` by their short hash, `metrics`.

    All that is wrong with the file is raised as one ValueError, each complaint with its line.
    """

    def __init__(self, path: Path, notebooks: Path, limit: float = 10_000) -> None:
        self.path, self.errors = path, []
        try:
            text = path.read_text(encoding="utf-8")
            for event in yaml.parse(text, yaml.SafeLoader):
                if isinstance(event, yaml.AliasEvent):  # a few of them make billions of points
                    line = event.start_mark.line + 1
                    raise ValueError(f"{path}:{line}: write *{event.anchor} out; no aliases here")
            root = yaml.compose(text, yaml.SafeLoader)
            self.lines = self._lines(root, ()) if root else {(): 1}
            self._stop_if_wrong()
            content = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(f"{path}: {' '.join(str(error).split())}") from None
        except RecursionError:
            raise ValueError(f"{path}: nested too deeply") from None
        if not isinstance(content, dict):
            raise ValueError(f"{path}:1: expected notebook:, parameters: and so on")
        for key in content.keys() - KEYS:
            self._error((key,), f"{key!r} is unknown; expected one of {', '.join(sorted(KEYS))}")
        self._stop_if_wrong()

        self.notebook = notebooks / f"{content.get('notebook')}.ipynb"
        if "/" in f"{content.get('notebook')}" or not self.notebook.exists():
            names = ", ".join(sorted(p.stem for p in notebooks.glob("*.ipynb")))
            self._error(
                ("notebook",), f"no notebook {content.get('notebook')!r}; there are {names}"
            )
        self._stop_if_wrong()
        self.known = papermill.inspect_notebook(plain(self.notebook))

        blocks = self._blocks(content)
        self.skip = self._constraints(content.get("skip", []))
        self.metrics = self._metrics(content.get("metrics", []))
        count = sum(math.prod(map(len, block.values())) for block in blocks)
        if count > limit:
            more = "add --yes if so many are meant" if limit < MOST else f"at most {MOST} will do"
            self._error(("parameters",), f"{count} points; {more}")
        self._stop_if_wrong()
        self.points = self._points(blocks)
        if not self.points:
            self._error(("skip",), "no point is left")
        self._stop_if_wrong()

    def _error(self, where: tuple, message: str) -> None:
        while where not in self.lines:
            where = where[:-1]
        self.errors.append((self.lines[where], message))

    def _stop_if_wrong(self) -> None:
        if self.errors:
            raise ValueError("\n".join(f"{self.path}:{n}: {m}" for n, m in sorted(self.errors)))

    def _lines(self, node: yaml.Node, where: tuple) -> dict[tuple, int]:
        """Return the line of each entry of the file."""
        lines = {where: node.start_mark.line + 1}
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    line = key.start_mark.line + 1
                    self.errors.append((line, "expected a name before the colon"))
                    continue
                inner = self._lines(value, (*where, key.value))
                inner[(*where, key.value)] = key.start_mark.line + 1
                if (*where, key.value) in lines:
                    self.errors.append(
                        (key.start_mark.line + 1, f"{key.value!r} stands here twice")
                    )
                lines |= inner
        elif isinstance(node, yaml.SequenceNode):
            for i, value in enumerate(node.value):
                lines |= self._lines(value, (*where, i))
        return lines

    def _blocks(self, content: dict) -> list[dict[str, list]]:
        """Return the values of each parameter, typed, for each block of the union."""
        given = content.get("parameters", {})
        places = {("parameters",): given}
        if isinstance(given, list):
            places = {("parameters", i): block for i, block in enumerate(given)}
        blocks = []
        for where, block in places.items():
            if not isinstance(block, dict):
                self._error(where, "expected parameters with their values, as in 'degree: [6, 8]'")
                continue
            seeds = block.get("seeds", content.get("seeds"))
            at = (*where, "seeds") if "seeds" in block else ("seeds",)
            block = {name: value for name, value in block.items() if name != "seeds"}
            values = {n: self._values((*where, n), n, value) for n, value in block.items()}
            if seeds is not None:
                values |= self._seeds(at, seeds, "seed" in block)
            blocks.append(values)
        return blocks

    def _seeds(self, where: tuple, seeds: object, twice: bool) -> dict[str, list]:
        if type(seeds) is not int or not 1 <= seeds <= MOST:
            self._error(where, f"seeds={seeds!r} must be a whole number from 1 to {MOST}")
        elif "seed" not in self.known:
            self._error(where, f"{self.notebook.stem} has no parameter seed")
        elif twice:
            self._error(where, "seeds and the parameter seed exclude each other")
        else:
            return {"seed": list(range(seeds))}
        return {}

    def _values(self, where: tuple, name: str, value: object) -> list:
        """Return all values of one parameter: a list, a range, a log range or a single one."""
        if name not in self.known:
            names = ", ".join(self.known)
            self._error(where, f"unknown parameter {name!r}; {self.notebook.stem} has {names}")
            return []
        is_list = self.known[name]["inferred_type_name"] not in KINDS
        if isinstance(value, dict):
            value = self._range(where, name, value)
        elif not isinstance(value, list) or (is_list and not any(type(v) is list for v in value)):
            value = [value]  # the same at every point
        elif not value:
            self._error(where, f"{name}=[] is empty, expected at least one value")
        return [self._typed((*where, i), name, entry) for i, entry in enumerate(value)]

    def _range(self, where: tuple, name: str, value: dict) -> list:
        match value:
            case {"range": [int() | float() as low, int() | float() as high, *step]} if (
                len(value) == 1 and len(step) < 2
            ):
                step = step[0] if step else 1
                if isinstance(step, int | float) and step > 0 and high >= low:
                    if not (high - low) < MOST * step:
                        self._error(where, f"{name}={value!r} has more than {MOST} values")
                        return []
                    count = math.floor((high - low) / step + 1e-9) + 1
                    return [round(low + i * step, 12) for i in range(count)]
            case {"log_range": [int() | float() as low, int() | float() as high, int() as count]}:
                if 0 < low < high < math.inf and 1 < count <= MOST and len(value) == 1:
                    values = [low * (high / low) ** (i / (count - 1)) for i in range(count)]
                    values = [float(f"{v:.6g}") for v in values]
                    whole = self.known[name]["inferred_type_name"] == "int"
                    return sorted({round(v) for v in values}) if whole else values
        self._error(
            where,
            f"{name}={value!r} is no range; expected {{range: [low, high]}}, {{range: [low, high, "
            "step]}, both ends included, or {log_range: [low, high, how many]}",
        )
        return []

    def _typed(self, where: tuple, name: str, value: object) -> object:
        """Return the value as the notebook's type; an int will do where a float is wanted."""
        kind = self.known[name]["inferred_type_name"]
        wanted = KINDS.get(kind, list)
        if wanted is float and type(value) is int:
            with contextlib.suppress(OverflowError):
                value = float(value)
        if type(value) is float and not math.isfinite(value):
            self._error(where, f"{name}={value!r} must be finite")
        if type(value) is not wanted:
            given = "text" if isinstance(value, str) else type(value).__name__
            hint = ""
            if isinstance(value, str) and wanted in (int, float):
                with contextlib.suppress(ValueError):
                    hint = f"; write {wanted(float(value))!r}, without quotes and with a point"
            self._error(where, f"{name}={value!r} is {given}, expected {kind}{hint}")
        return value

    def _constraints(self, skip: object) -> list:
        if not isinstance(skip, list):
            self._error(("skip",), "expected a list, as in 'skip: [degree > length]'")
            return []
        return [self._constraint(i, str(rule)) for i, rule in enumerate(skip)]

    def _constraint(self, i: int, rule: str) -> object:
        """Return a compiled condition on the parameters that does nothing else."""
        try:
            tree = ast.parse(rule, mode="eval")
        except SyntaxError as error:
            return self._error(("skip", i), f"{rule!r} is no expression: {error.msg}")
        for node in ast.walk(tree):
            if not isinstance(node, ALLOWED):
                return self._error(("skip", i), f"{rule!r} may only compare and calculate")
            if isinstance(node, ast.Name) and node.id not in self.known:
                return self._error(("skip", i), f"{rule!r}: unknown parameter {node.id!r}")
            if isinstance(node, ast.BinOp) and not all(map(self._is_number, ast.walk(node))):
                return self._error(("skip", i), f"{rule!r} may only calculate with numbers")
        return compile(tree, str(self.path), "eval")

    def _is_number(self, node: ast.AST) -> bool:
        """Tell whether a part of a calculation is no text, whose multiples could be huge."""
        if isinstance(node, ast.Name) and node.id in self.known:
            return self.known[node.id]["inferred_type_name"] in ("int", "float", "bool")
        return not isinstance(node, ast.Constant) or isinstance(node.value, int | float)

    def _metrics(self, metrics: object) -> list[str]:
        if not isinstance(metrics, list):
            self._error(("metrics",), "expected a list of names")
            return []
        cells = json.loads(self.notebook.read_text())["cells"]
        source = "".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
        for i, name in enumerate(metrics):
            if f"{name}=" not in source:
                self._error(("metrics", i), f"{self.notebook.stem} never records {name!r}")
        return metrics

    def _points(self, blocks: list[dict[str, list]]) -> dict[str, dict]:
        """Return the parameters of each point under its short hash, in the order of the file.

        The hash is of all parameters, those left at their defaults too, so that a point keeps its
        name when the grid grows by a parameter.
        """
        default = {name: ast.literal_eval(p["default"]) for name, p in self.known.items()}
        named = [name for name in self.known if any(name in block for block in blocks)]
        points = {}
        for block in blocks:
            for values in itertools.product(*block.values()):
                point = default | dict(zip(block, values, strict=True))
                if not self._skipped(point):
                    text = json.dumps([self.notebook.stem, point], sort_keys=True)
                    short = hashlib.sha256(text.encode()).hexdigest()[:10]
                    points[short] = {name: point[name] for name in named}
        return points

    def _skipped(self, point: dict) -> bool:
        for i, rule in enumerate(self.skip):
            try:
                if eval(rule, {"__builtins__": {}}, point):
                    return True
            except (ArithmeticError, TypeError) as error:
                self._error(("skip", i), f"{error} at {point}")
                self._stop_if_wrong()
        return False
