"""Formulas of effects, such as ``age + treat * time + random(rater)``: parsed, never run.

A formula is read with Python's own grammar and compared with what is allowed here: names of
columns, a few functions of one column, and the operators of model formulas. Anything else is
refused by name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from dynaesti.errors import InputError

NUMBER, CATEGORY, ANY = "number", "category", "any"
# what each function of a column makes of it
FUNCTIONS = {"C": CATEGORY, "log": NUMBER, "practice": CATEGORY, "random": CATEGORY}
TIME = "time"  # the name of the clock
ITEM = "item"  # in practice(item): the item, whatever its column is called
LONGEST = 500  # characters of a formula
MOST_TERMS = 60
QUOTED = re.compile(r"`([^`]*)`")
ALLOWED = (
    "columns, time, C(column), log(column), practice(item), practice(column) and random(column), "
    "joined by + - * and :"
)


@dataclass(frozen=True)
class Factor:
    """One factor of a term: a column, or a function of one."""

    function: str  # a key of FUNCTIONS; "" for the column itself
    column: str

    @property
    def is_time(self) -> bool:
        """Whether it is the clock."""
        return not self.function and self.column == TIME

    def __str__(self) -> str:
        return f"{self.function}({self.column})" if self.function else self.column


Term = tuple[Factor, ...]


@dataclass(frozen=True)
class Formula:
    """The terms of a formula, main effects first."""

    text: str
    terms: tuple[Term, ...]  # products of factors, without the blocks
    blocks: tuple[Factor, ...]  # exchangeable: random(column)

    @property
    def columns(self) -> dict[str, str]:
        """Columns of the data that are needed, and whether as numbers, categories or either."""
        out: dict[str, str] = {}
        every = [*self.blocks, *(factor for term in self.terms for factor in term)]
        for factor in every:
            if factor.is_time or (factor.function == "practice" and factor.column == ITEM):
                continue
            kind = FUNCTIONS.get(factor.function, ANY)
            known = out.get(factor.column, ANY)
            if {known, kind} == {NUMBER, CATEGORY}:
                raise _refusal(
                    self.text, f"{factor.column!r} is used as numbers and as categories; use one"
                )
            out[factor.column] = known if kind == ANY else kind
        return out

    def is_reduced(self, term: Term, factor: Factor) -> bool:
        """Whether the first level of a category is left out in a term.

        So it is where the rest of the term is in the formula too; the constant always is.
        """
        rest = frozenset(other for other in term if other != factor)
        return not rest or any(frozenset(other) == rest for other in self.terms)


def parse_formula(text: str) -> Formula:
    """The terms of a formula.

    Raises
    ------
    InputError
        If something else than columns, known functions and operators stands in it. Nothing of it
        is ever evaluated.
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"effects: expected a formula such as 'age + treat * time', got {text!r}")
    if len(text) > LONGEST:
        raise InputError(f"effects: the formula has {len(text):,} characters; at most {LONGEST}")
    if "**" in text:
        raise _refusal(text, "'**' is not allowed")
    names: list[str] = QUOTED.findall(text)
    plain = text
    for k, quoted in enumerate(names):
        plain = plain.replace(f"`{quoted}`", f"_quoted_{k}_", 1)
    try:
        # ":" binds tighter than "*", as "**" does, which stands for it here
        tree = ast.parse(plain.strip().replace(":", "**"), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _refusal(text, "something cannot be read") from None
    parser = _Parser(text, {f"_quoted_{k}_": name for k, name in enumerate(names)})
    terms = parser.terms(tree.body)
    if not terms:
        raise _refusal(text, "there are no terms")
    return _checked(text, terms)


def _checked(text: str, terms: list[Term]) -> Formula:
    """The formula of these terms, blocks apart."""
    if len(terms) > MOST_TERMS:
        raise InputError(f"effects: {len(terms)} terms; at most {MOST_TERMS}")
    blocks = [term[0] for term in terms if len(term) == 1 and term[0].function == "random"]
    mixed = [term for term in terms if len(term) > 1 and any(f.function == "random" for f in term)]
    if mixed:
        raise _refusal(text, "random(…) stands by itself, not in products")
    rest = sorted((term for term in terms if term[0].function != "random"), key=len)
    formula = Formula(text, tuple(rest), tuple(blocks))
    _ = formula.columns  # refuses columns of two kinds
    return formula


def _refusal(text: str, why: str) -> InputError:
    return InputError(f"effects: {why} in {text!r}; allowed are {ALLOWED}")


@dataclass(frozen=True)
class _Parser:
    """Terms of the nodes of a formula's tree."""

    text: str
    quoted: Mapping[str, str]  # names in backticks, by what stands for them

    def terms(self, node: ast.expr) -> list[Term]:
        match node:
            case ast.BinOp(left, ast.Add(), right):
                return _union(self.terms(left), self.terms(right))
            case ast.BinOp(left, ast.Sub(), right):
                gone = {frozenset(term) for term in self.terms(right)}
                return [term for term in self.terms(left) if frozenset(term) not in gone]
            case ast.BinOp(left, ast.Mult(), right):
                one, other = self.terms(left), self.terms(right)
                return _union(one, other, _products(one, other))
            case ast.BinOp(left, ast.Pow(), right):
                return _products(self.terms(left), self.terms(right))
            case ast.Name(name):
                return [(Factor("", self.quoted.get(name, name)),)]
            case ast.Call(ast.Name(function), [ast.Name(name)], []):
                if function not in FUNCTIONS:
                    raise _refusal(self.text, f"{function!r} is not a function that is known")
                return [(Factor(function, self.quoted.get(name, name)),)]
            case ast.Constant(1):
                return []
            case ast.Constant(0) | ast.UnaryOp(ast.USub(), ast.Constant(1)):
                raise _refusal(self.text, "there is no constant to leave out: 0 is the average")
        raise _refusal(self.text, f"{ast.unparse(node).replace('**', ':')[:60]!r} is not allowed")


def _union(*parts: list[Term]) -> list[Term]:
    """All terms, each once."""
    return list({frozenset(term): term for part in parts[::-1] for term in part[::-1]}.values())[
        ::-1
    ]


def _products(one: list[Term], other: list[Term]) -> list[Term]:
    """Terms that join one of each side; a factor occurs once in a term."""
    return _union([tuple(dict.fromkeys((*a, *b))) for a, b in product(one, other)])
