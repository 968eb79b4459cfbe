"""What requests and responses look like: the types of the OpenAPI page."""

from __future__ import annotations

from typing import Annotated, Any
from unicodedata import category

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

MOST_ANSWERS = 10_000  # of one request
LONGEST = 200  # characters of an id, item or key
NO_CHARACTERS = ("Cc", "Cs")  # control characters, such as line ends, and halves of characters


def _text(value: Any) -> Any:
    """Ids and items may be whole numbers in JSON; they are kept as text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


def _printable(value: str) -> str:
    if value != value.strip() or any(category(c) in NO_CHARACTERS for c in value):
        raise ValueError("must not begin or end with blanks, nor hold what is no character")
    return value


def _addressable(value: str) -> str:
    """An id stands in addresses, where programs take these endings for something else."""
    if value in (".", "..") or value.endswith("/next"):
        raise ValueError("must not be . or .., nor end with /next: addresses cannot hold it")
    return value


Name = Annotated[
    str,
    BeforeValidator(_text),
    Field(min_length=1, max_length=LONGEST),
    AfterValidator(_printable),
]
PersonId = Annotated[Name, AfterValidator(_addressable)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Time = Number | Annotated[str, Field(min_length=1, max_length=50)]
Plain = Annotated[str, Field(max_length=LONGEST)] | Number
Columns = dict[Annotated[str, Field(max_length=LONGEST)], Plain]


class Shape(BaseModel):
    """Something that is posted: no other fields."""

    model_config = ConfigDict(extra="forbid")


class Answer(Shape):
    """One answer. An answer with a key counts once, however often it is posted."""

    id: PersonId = Field(description="the person")
    item: Name
    resp: Number = Field(description="the response: 0 or 1, a category, a count, …")
    time: Time = Field(description="as in the fit's data: a number, or an ISO date")
    key: Name | None = Field(
        default=None,
        description="the sender's own name of this answer, unique among the person's",
    )
    columns: Columns | None = Field(
        default=None, max_length=100, description="further columns that the fit's effects need"
    )


class Answers(Shape):
    """Answers to be kept, all of them or none."""

    answers: Annotated[list[Answer], Field(min_length=1, max_length=MOST_ANSWERS)]


class Kept(BaseModel):
    """What became of posted answers. They are durable."""

    new: int
    repeated: int = Field(description="known by their key; they do not count again")
    queued: int = Field(description="of the new ones, of items that are not calibrated yet")


class Point(BaseModel):
    """Ability right after an answer."""

    time: float | str
    mean: float
    sd: float
    lower: float
    upper: float


class Move(BaseModel):
    """What one answer did."""

    time: float | str
    item: str
    resp: float
    expected: float = Field(description="the mean response to be expected just before")
    before: float
    after: float
    change: float
    key: str


class Person(BaseModel):
    """A person now: ability at the last answer. Numbers are null while they are made anew."""

    id: str
    answers: int
    time: float | str | None
    mean: float | None
    sd: float | None
    lower: float | None
    upper: float | None


class ListedPerson(Person):
    """A person in a list, with the last points of the curve where they are asked for."""

    curve: list[Point] | None = None


class People(BaseModel):
    """A part of the people, and how many there are."""

    people: list[ListedPerson]
    total: int


class PersonNow(Person):
    """A person with the curve, and what moved it."""

    curve: list[Point]
    moved: list[Move] = Field(description="the newest first")
    scale: str
    level: float = Field(description="probability of the band from lower to upper")


class NextItem(BaseModel):
    """An item to ask next."""

    item: str
    information: float
    expected: float = Field(description="the expected response, as a share of what is possible")


class Next(BaseModel):
    """What to ask next, best first; nothing where `stop` is reached."""

    id: str
    time: float | str | None
    items: list[NextItem]


class Question(Shape):
    """What is to be predicted: answers of a person to items."""

    id: Name
    items: Annotated[list[Name], Field(min_length=1, max_length=1000)]
    time: Time | None = Field(default=None, description="default: that of the last answer")
    columns: Columns | None = Field(default=None, max_length=100)


class Prediction(BaseModel):
    """Chances of the responses 0, 1, … to an item."""

    item: str
    expected: float
    probabilities: list[float] | None


class Predictions(BaseModel):
    """Chances of answers."""

    id: str
    time: float | str | None
    items: list[Prediction]


class Drift(BaseModel):
    """What the last refit found of an item."""

    flagged: bool
    shift: float | None
    se: float | None
    sentence: str


class Item(BaseModel):
    """An item with its parameters."""

    item: str
    model: str
    parameters: dict[str, float]
    answers: int
    drift: Drift | None


class QueuedItem(BaseModel):
    """An item that a refit will calibrate."""

    item: str
    answers: int


class Items(BaseModel):
    """A part of the items, how many there are, and those that wait for a refit."""

    items: list[Item]
    total: int
    queued: list[QueuedItem]


class Bin(BaseModel):
    """People whose mean ability lies in a range."""

    lower: float
    upper: float
    people: int


class Cohort(BaseModel):
    """Everyone now; `curve` is what to expect of someone of whom nothing is known."""

    people: int
    answers: int
    time: float | str | None
    mean: float | None
    sd: float | None
    lower: float | None
    upper: float | None
    bins: list[Bin]
    curve: list[Point]


class Health(BaseModel):
    """Whether the service works."""

    status: str
    version: str
    database: str
    scorer: int


class RefusedAnswer(BaseModel):
    """Why one of the posted answers was refused."""

    answer: int = Field(description="its place among those posted, from 0")
    detail: str


class Refusal(BaseModel):
    """Why a request was refused; nothing of it was kept."""

    detail: str
    errors: list[RefusedAnswer] | None = None
