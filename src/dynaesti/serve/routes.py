"""The routes: what can be posted and asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from dynaesti import __version__
from dynaesti.errors import InputError
from dynaesti.serve import questions
from dynaesti.serve.access import needs
from dynaesti.serve.database import Transaction
from dynaesti.serve.rows import AnswerRow
from dynaesti.serve.served import ServedScorer
from dynaesti.serve.service import Service, person_facts
from dynaesti.serve.shapes import (
    LONGEST,
    Answer,
    Answers,
    Cohort,
    Health,
    Items,
    Kept,
    Next,
    People,
    PersonNow,
    Predictions,
    Question,
    Refusal,
)

MOST_CURVES = 100  # people of a list with curves
MOST_AT_ONCE = 100  # answers that are checked between other requests
MOST_TOLD = 20  # refused answers that are named
REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"model": Refusal} for code in (400, 401, 403, 413, 422, 429, 503)
}
UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"model": Refusal}}
reading = [Depends(needs("read"))]
writing = [Depends(needs("write"))]
router = APIRouter(responses=REFUSALS)
Id = Annotated[str, Path(min_length=1, max_length=LONGEST, description="a person")]
At = Annotated[str | None, Query(max_length=50, description="default: the time of the last answer")]
Search = Annotated[str, Query(max_length=LONGEST)]
Offset = Annotated[int, Query(ge=0, le=10**9)]
Facts = dict[str, Any]


def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


class Refused(Exception):  # noqa: N818  an outcome
    """Answers that cannot be kept: places and reasons."""

    def __init__(self, errors: list[tuple[int, str]], posted: int) -> None:
        super().__init__()
        self.errors = errors
        self.posted = posted


# --- answers


@router.post("/answers", response_model=Kept, dependencies=writing)
async def post_answers(body: Answers, request: Request) -> Facts:
    """Keep answers. The response comes when they are on disk."""
    service = _service(request)
    queues = request.app.state.unknown_items == "queue"
    if len(body.answers) > MOST_AT_ONCE:  # others are served meanwhile
        checked = await asyncio.to_thread(_checked, body.answers, service, queues)
    else:
        checked = _checked(body.answers, service, queues)
    rows, errors, queued = checked
    if errors:
        service.metrics.answers.labels("refused").inc(len(body.answers))
        raise Refused(errors, len(body.answers))
    new = await service.post(rows)
    known = len(rows) - len(new)
    waiting = len(queued & new)
    count = service.metrics.answers.labels
    count("new").inc(len(new))
    count("repeated").inc(known)
    count("queued").inc(waiting)
    return {"new": len(new), "repeated": known, "queued": waiting}


def _checked(
    answers: Sequence[Answer], service: Service, queues: bool
) -> tuple[list[AnswerRow], list[tuple[int, str]], set[tuple[str, str]]]:
    """Answers as the log keeps them; places and reasons of those refused; those to be queued."""
    served = service.served
    rows: list[AnswerRow] = []
    errors: list[tuple[int, str]] = []
    queued: set[tuple[str, str]] = set()
    for k, one in enumerate(answers):
        try:
            row = _row(one, served, service)
            if served.knows(row.item):
                served.check(row)
            elif queues:
                queued.add((row.id, row.key))
            else:
                raise InputError(f"item: the scorer does not know {one.item!r}")
            rows.append(row)
        except InputError as error:
            errors.append((k, str(error)))
    return rows, errors, queued


def _row(one: Answer, served: ServedScorer, service: Service) -> AnswerRow:
    return AnswerRow(
        one.id,
        one.item,
        one.resp,
        served.stored_time(one.time),
        one.key or service.made_up_key(),
        json.dumps(one.columns, sort_keys=True) if one.columns else None,
    )


# --- people


@router.get("/people", response_model=People, response_model_exclude_unset=True,
            dependencies=reading)  # fmt: skip
async def list_people(
    request: Request,
    search: Search = "",
    sort: Literal["id", "-id", "mean", "-mean", "time", "-time", "answers", "-answers"] = "id",
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    offset: Offset = 0,
    points: Annotated[
        int, Query(ge=0, le=50, description="last points of each curve; then at most 100 people")
    ] = 0,
) -> Facts:
    """People, by the text that their id contains, in an order."""
    most = min(limit, MOST_CURVES) if points else limit

    def ask(tx: Transaction, served: ServedScorer) -> Facts:
        rows, total = questions.people(tx, served, _storable(search), sort, most, offset)
        found = [person_facts(row, served) for row in rows]
        if points:
            curves = questions.last_points(tx, served, [row.id for row in rows], points)
            found = [{**one, "curve": curves[one["id"]]} for one in found]
        return {"people": found, "total": total}

    return await _service(request).read(ask)


@router.get("/people/{id:path}/next", response_model=Next, responses=UNKNOWN,
            dependencies=reading)  # fmt: skip
async def next_items(
    id: Id,
    request: Request,
    count: Annotated[int, Query(ge=1, le=50)] = 1,
    at: At = None,
    target: Annotated[float | None, Query(gt=0, lt=1)] = None,
    stop: Annotated[float | None, Query(gt=0, le=100)] = None,
    exposure: Annotated[int | None, Query(ge=1, le=1000)] = None,
    exclude: Annotated[list[str] | None, Query(max_length=1000)] = None,
    unseen: Annotated[bool, Query(description="only items never answered")] = False,
) -> Facts:
    """What to ask next, of a newcomer too."""
    row = await _service(request).person(_storable(id))

    def ask(tx: Transaction, served: ServedScorer) -> Facts:
        state = questions.state_of(tx, served, row, {})
        barred = [one for one in exclude or () if served.knows(one) or _refuse_item(one)]
        if unseen:
            barred += [one for one in questions.asked_items(tx, id) if served.knows(one)]
        stored = None if at is None else served.stored_time(_time(at, served))
        options = {"count": count, "target": target, "stop": stop, "exposure": exposure}
        found = questions.next_items(served, state, stored, barred, **options)
        when = stored if stored is not None or row is None else row.time
        return {"id": id, "time": served.shown_time(when), "items": found}

    return await _service(request).read(ask)


@router.get("/people/{id:path}", response_model=PersonNow, responses=UNKNOWN,
            dependencies=reading)  # fmt: skip
async def get_person(
    id: Id,
    request: Request,
    points: Annotated[int, Query(ge=0, le=5000, description="of the curve, the last ones")] = 100,
    moves: Annotated[int, Query(ge=0, le=200, description="answers in `moved`")] = 20,
    at: At = None,
) -> Facts:
    """A person now, the curve, and what moved it."""
    row = await _service(request).person(_storable(id))
    if row is None or not row.total:
        raise HTTPException(404, "nobody of this id has answered")

    def ask(tx: Transaction, served: ServedScorer) -> Facts:
        facts = person_facts(row, served)
        curve, moved = [], []
        path = questions.history(tx, served, id) if points or moves else None
        if path is not None and path.taken:
            curve = questions.points_of(served, path, max(points, 1))
            moved = questions.moves_of(served, path, moves)
            # answers may have come since the row was read: curve and numbers are of one moment
            facts |= {"answers": path.state.answers, "time": curve[-1]["time"]}
        if facts["answers"] or at is not None:
            state = path.state if path is not None else questions.state_of(tx, served, row, {})
            stored = None if at is None else served.stored_time(_time(at, served))
            facts |= questions.ability_at(served, state, stored)
        end = curve if points else []
        scale = served.scorer.scale.name
        return {**facts, "curve": end, "moved": moved, "scale": scale, "level": questions.LEVEL}

    return await _service(request).read(ask)


@router.post("/predict", response_model=Predictions, dependencies=reading)
async def predict(body: Question, request: Request) -> Facts:
    """Chances of a person's answers to items."""
    row = await _service(request).person(body.id)

    def ask(tx: Transaction, served: ServedScorer) -> Facts:
        columns = body.columns or {}
        state = questions.state_of(tx, served, row, columns)
        if body.time is not None:
            stored = served.stored_time(body.time)
        elif row is not None and row.time is not None:
            stored = row.time
        else:
            raise InputError("time: needed of someone who has not answered a known item yet")
        found = questions.predictions(served, state, body.items, stored, columns)
        return {"id": body.id, "time": served.shown_time(stored), "items": found}

    return await _service(request).read(ask)


# --- items, everyone, events


@router.get("/items", response_model=Items, dependencies=reading)
async def list_items(
    request: Request,
    search: Search = "",
    limit: Annotated[int, Query(ge=1, le=5000)] = 500,
    offset: Offset = 0,
) -> Facts:
    """Items: parameters, what a refit found, and those that wait for one."""
    service = _service(request)

    def ask(tx: Transaction, served: ServedScorer) -> Facts:
        counts, _ = service.counts.read(tx)
        return questions.items(served, counts, service.report_of(served), search, limit, offset)

    return await service.read(ask)


@router.get("/cohort", response_model=Cohort, dependencies=reading)
async def get_cohort(request: Request) -> Facts:
    """Everyone now."""
    service = _service(request)

    def ask(tx: Transaction, served: ServedScorer) -> Facts:
        _, first = service.counts.read(tx)
        return questions.cohort(tx, served, first)

    return await service.read(ask)


@router.get("/events", response_class=StreamingResponse, dependencies=reading)
async def events(
    request: Request, id: Annotated[list[str] | None, Query(max_length=1000)] = None
) -> StreamingResponse:
    """Server-sent events: `answer`, `scorer` and `lost`, as they happen."""
    broker = _service(request).broker
    if broker.is_full:
        raise HTTPException(503, "too many listeners; ask again later")
    return StreamingResponse(
        broker.stream(frozenset(id or ())),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


@router.get("/health", response_model=Health)
async def health(request: Request) -> Facts:
    """Whether the database answers. No key is needed."""
    service = _service(request)
    await service.read(lambda tx, _: tx.meta("version"))
    return {
        "status": "ok",
        "version": __version__,
        "database": service.database.name,
        "scorer": service.served.number,
    }


@router.get("/metrics", response_class=Response, dependencies=reading)
async def metrics(request: Request) -> Response:
    """Figures of this worker, for Prometheus."""
    service = _service(request)
    service.metrics.waiting.set(service.waiting)
    service.metrics.listeners.set(len(service.broker.listeners))
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _time(text: str, served: ServedScorer) -> float | str:
    """A time in an address."""
    if served.stamps:
        return text.replace(" ", "+") if "T" in text else text  # a plus sign reads as a blank
    try:
        return float(text)
    except ValueError:
        raise InputError("at: expected a number, as in the fit's data") from None


def _storable(text: str) -> str:
    """A text that databases take; others are of nobody."""
    return text.replace("\0", "\ufffd")


def _refuse_item(item: str) -> bool:
    raise InputError(f"exclude: the scorer knows no item {item!r}")
