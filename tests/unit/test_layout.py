"""The order of the source: small functions and modules, folders used by their surface only."""

import ast
from functools import cache
from pathlib import Path

import pytest

from support.sizes import sizes

SRC = Path(__file__).parents[2] / "src" / "dynaesti"
FOLDERS = sorted(path.name for path in SRC.iterdir() if (path / "__init__.py").exists())
FUNCTION, COMPILED, MODULE = 45, 80, 450  # lines of code at most

# What is still longer, with its present lines of code. Numbers may go down and entries may go;
# neither may come.
LONG_MODULES: dict[str, int] = {}
LONG_FUNCTIONS = {
    # two dozen arrays that make one batch of curves, put together once
    "inference/single_curve.py:_graft_batch": 48,
}


@cache
def measured():
    """Modules and functions above their limit: ({module: lines}, {module:function: lines})."""
    modules, long = {}, {}
    for path in sorted(SRC.rglob("*.py")):
        name = path.relative_to(SRC).as_posix()
        lines, functions = sizes(path)
        if lines > MODULE:
            modules[name] = lines
        for function in functions:
            if function.lines > (COMPILED if function.compiled else FUNCTION):
                long[f"{name}:{function.name}"] = function.lines
    return modules, long


@pytest.mark.parametrize(
    ("kind", "allowed"), [(0, LONG_MODULES), (1, LONG_FUNCTIONS)], ids=["modules", "functions"]
)
def test_nothing_grows_beyond_its_limit(kind, allowed):
    found = measured()[kind]
    grown = {name: n for name, n in found.items() if n > allowed.get(name, 0)}
    assert not grown, f"too long, please split: {grown}"
    shrunk = {name: found.get(name) for name, n in allowed.items() if found.get(name, 0) < n}
    assert not shrunk, f"shorter by now, please take it down in the list (None: out): {shrunk}"


def surface(folder):
    """What a folder offers to others in its `__init__.pyi`: (names, modules offered whole)."""
    tree = ast.parse((folder / "__init__.pyi").read_text(encoding="utf-8"))
    names, modules = set(), set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            into = names if node.module else modules
            into.update(alias.asname or alias.name for alias in node.names)
    return names, modules


def imports(path):
    """All imports of the package in a file: (line, module, names)."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:  # from within the same folder
                inside = path.relative_to(SRC).parts[: -node.level]
                module = ".".join(("dynaesti", *inside, *module.split("."))).rstrip(".")
            yield node.lineno, module, [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, []


def test_folders_are_used_by_their_surface_only():
    offered = {name: set.union(*surface(SRC / name)) for name in FOLDERS}
    wrong = []
    for path in sorted(SRC.rglob("*.py")):
        home = path.relative_to(SRC).parts[0]
        for line, module, names in imports(path):
            _, *parts = module.split(".")
            if not module.startswith("dynaesti.") or parts[0] not in FOLDERS or parts[0] == home:
                continue
            where = f"{path.relative_to(SRC)}:{line}"
            if len(parts) > 1:
                wrong.append(f"{where} {module}")
            wrong += [f"{where} {module}.{name}" for name in names if name not in offered[parts[0]]]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_name_of_a_surface_is_one_of_its_modules(folder):
    """A lazy surface would give the module in place of the name, once that was imported."""
    modules = {path.stem for path in (SRC / folder).iterdir() if not path.name.startswith("__")}
    assert not surface(SRC / folder)[0] & modules
