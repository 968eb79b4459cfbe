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
LONG_MODULES = {
    "ability_estimator.py": 506,
    "model/items/bank.py": 500,
    "results/curve.py": 574,
    "results/fit.py": 634,
    "sharded/fit.py": 610,
}
LONG_FUNCTIONS = {
    "ability_estimator.py:DynAEsti.__init__": 110,
    "ability_estimator.py:DynAEsti._fit_into": 87,
    "ability_estimator.py:DynAEsti.fit": 77,
    "cli/curve.py:options": 51,
    "cli/curve.py:run": 60,
    "cli/fit.py:_of_shards": 55,
    "cli/fit.py:finish": 61,
    "cli/options.py:data_options": 49,
    "cli/options.py:model_options": 49,
    "cli/simulate.py:_to_shards": 52,
    "cli/simulate.py:options": 49,
    "cli/simulate.py:run": 51,
    "cli/update.py:_in_memory": 47,
    "cli/update.py:_of_shards": 70,
    "data/checks.py:check_responses": 99,
    "data/dates.py:_meant": 59,
    "data/parse.py:parse_columns": 61,
    "data/responses.py:Responses.joined": 57,
    "data/responses.py:Responses.read": 57,
    "data/responses.py:_sorted": 48,
    "estimation/coding.py:build_coding": 54,
    "estimation/e_step.py:EStep.counts": 46,
    "estimation/e_step.py:EStep.graft": 52,
    "estimation/em.py:Loop.run": 66,
    "estimation/new_items.py:NewItemFit.learned": 61,
    "estimation/start_values.py:_counted_from": 64,
    "estimation/start_values.py:_placed": 64,
    "estimation/start_values.py:build_bank": 91,
    "inference/grafting.py:EPState.look": 69,
    "inference/many_curves.py:graft_many": 66,
    "inference/moments/match.py:match_sites_cached": 82,
    "inference/moments/on_grid.py:grid_moments": 90,
    "inference/predict.py:predict_marginals": 79,
    "inference/single_curve.py:_graft_batch": 75,
    "inference/site_likelihood.py:Likelihood._match_block": 53,
    "inference/site_likelihood.py:Likelihood.match": 70,
    "inference/solvers/level_matern32.py:smooth_level_matern32": 136,
    "inference/solvers/state_space.py:_smooth": 141,
    "report/charts.py:_people": 52,
    "results/io/curve_file.py:read_component": 47,
    "results/io/fit_file.py:read_common": 51,
    "results/predictions.py:predict_responses": 51,
    "sharded/fit.py:UpdateTask.__call__": 48,
    "sharded/fit.py:open_sharded": 57,
    "sharded/prepare_shards.py:_sorted_shards": 85,
    "sharded/prepare_shards.py:_written": 47,
    "sharded/prepare_shards.py:prepare": 47,
    "sharded/simulate.py:simulate_shards": 63,
    "studies/golf.py:run": 100,
    "studies/held_out_careers.py:run": 98,
    "studies/polling.py:run": 93,
    "studies/synthetic.py:run": 91,
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
