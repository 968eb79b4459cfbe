"""Lines of code of functions and modules: docstrings, comments and blank lines are not counted."""

import ast
import io
import tokenize
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from pathlib import Path

NO_CODE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class FunctionSize:
    """A function (signature included), by its name within the module."""

    name: str
    lines: int
    compiled: bool


def code_lines(source: str, tree: ast.Module) -> set[int]:
    """Numbers of the lines that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, Documented) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, docstring.end_lineno + 1))
    return lines


def functions(tree: ast.AST, prefix: str = ""):
    """All functions with their qualified names, methods and inner functions among them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        inner = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        yield from functions(node, f"{prefix}{node.name}." if inner else prefix)


def is_compiled(function: ast.FunctionDef) -> bool:
    """Whether one of its decorators is `jit` or `jit_internal`."""
    return any(
        isinstance(node, ast.Name) and node.id in ("jit", "jit_internal")
        for decorator in function.decorator_list
        for node in ast.walk(decorator)
    )


def sizes(path: Path) -> tuple[int, list[FunctionSize]]:
    """Lines of code of a module, and of each of its functions."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    lines = sorted(code_lines(source, tree))
    return len(lines), [
        FunctionSize(
            name,
            bisect_right(lines, node.end_lineno) - bisect_left(lines, node.lineno),
            is_compiled(node),
        )
        for name, node in functions(tree)
    ]
