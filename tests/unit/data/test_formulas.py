"""Formulas of effects: what they mean, and that nothing in them is ever run."""

import pytest

from dynaesti.data import parse_formula
from dynaesti.errors import InputError


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("age + treat * time", ["age", "treat", "time", "treat:time"]),
        ("a*b:c", ["a", "b:c", "a:b:c"]),
        ("(a + b):t", ["a:t", "b:t"]),
        ("x*y - x", ["y", "x:y"]),
        ("a + a + 1", ["a"]),
        ("`my col` + C(lang)", ["my col", "C(lang)"]),
        ("b:a + a:b", ["b:a"]),
        ("practice(item) + log(x)", ["practice(item)", "log(x)"]),
    ],
)
def test_terms(text, terms):
    found = parse_formula(text).terms
    assert [":".join(map(str, term)) for term in found] == terms


def test_blocks_and_columns():
    formula = parse_formula("practice(skill) + practice(item) + random(rater) + age + time")
    assert [str(block) for block in formula.blocks] == ["random(rater)"]
    assert formula.columns == {"rater": "category", "skill": "category", "age": "any"}


def test_levels_are_left_out_where_the_rest_of_a_term_is_there():
    formula = parse_formula("C(a) + C(b):time")
    assert formula.is_reduced(formula.terms[0], formula.terms[0][0])
    assert not formula.is_reduced(formula.terms[1], formula.terms[1][0])


HOSTILE = [
    "__import__('os').system('touch hacked')",
    "open('hacked', 'w')",
    "a.__class__",
    "x[0]",
    "[x for x in y]",
    "lambda: 1",
    "(lambda: 1)()",
    "f'{a}'",
    "{a}",
    "a if b else c",
    "a:=3",
    "a; b",
    "a\nb",
    "C(a + b)",
    "C(a, b)",
    "log(x, base=2)",
    "eval(x)",
    "a ** 2",
    "a / b",
    "a @ b",
    "-1 + a",
    "0 + a",
    "a + 0",
    "2 * a",
    "'text'",
    "`a",
    "",
    "   ",
    "1",
    "random(a):b",
    "log(a) + C(a)",
    "a" * 600,
    "a +",
    "a\0b",
    "`a`b`",
    "__debug__ = 1",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_else_stands_in_a_formula_is_refused_and_not_run(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="effects"):
        parse_formula(text)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [3, None, ["a"], b"a"])
def test_only_text_is_a_formula(value):
    with pytest.raises(InputError, match="expected a formula"):
        parse_formula(value)
