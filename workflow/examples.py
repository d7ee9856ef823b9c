"""Run the examples of the README and the guide, and put what they print under the code."""

import ast
import contextlib
import io
import re

from matplotlib import pyplot as plt

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n.*?^```\n)?", re.MULTILINE | re.DOTALL)


def with_outputs(text: str) -> str:
    """Run the Python blocks of a page one after the other; return the page with their outputs."""
    plt.switch_backend("agg")
    namespace: dict = {}

    def one(match: re.Match) -> str:
        printed = output(match[1], namespace)
        shown = f"\n```text\n{printed}```\n" if printed else ""
        return f"```python\n{match[1]}```\n{shown}"

    return BLOCK.sub(one, text)


def output(code: str, namespace: dict) -> str:
    """Run code as a notebook's cell does; return what it prints and the value of its last line."""
    *body, last = ast.parse(code).body
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), "example", "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "example", "eval"), namespace)
            if value is not None and not re.match("<|[A-Za-z]+Display", repr(value)):
                print(repr(value))
        else:
            exec(compile(ast.Module([last], []), "example", "exec"), namespace)
    return re.sub(r" +$", "", printed.getvalue(), flags=re.MULTILINE)


def picture() -> bytes:
    """Return the last figure drawn, as png."""
    drawn = io.BytesIO()
    plt.savefig(drawn, dpi=150, bbox_inches="tight", metadata={"Software": None})
    plt.close("all")
    return drawn.getvalue()
