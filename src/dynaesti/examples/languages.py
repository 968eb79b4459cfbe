"""Language models on a benchmark, by the date of their release."""

from typing import Any

import numpy as np

from dynaesti.core import as_rng
from dynaesti.examples.drawing import dates, right
from dynaesti.tables import Frame


def language_models(models: int = 72, seed: Any = 8) -> Frame:
    """Draw the results of language models on 150 questions of three benchmarks, one run each.

    A model does not change after its release; the field does. Those with open weights follow the
    closed ones about ten months later.

    Parameters
    ----------
    models : int, default 72
    seed : int or numpy.random.Generator, default 8

    Returns
    -------
    Frame
        Columns model, question, correct, released, weights ("open" or "closed").

    Examples
    --------
    >>> import dynaesti as dy
    >>> dy.examples.language_models(models=6).columns
    ['model', 'question', 'correct', 'released', 'weights']
    """
    rng = as_rng(seed)
    questions = [f"{name} {k:02d}" for name in ("reading", "maths", "code") for k in range(1, 51)]
    difficulty = np.concatenate([rng.normal(at, 1.1, 50) for at in (-1.0, 1.0, 0.6)])
    slope = np.exp(rng.normal(0.1, 0.3, 150))
    released = np.sort(rng.integers(0, 1095, models))
    opened = np.arange(models) % 2 == 1
    ability = (released - 300.0 * opened - 400) / 365.25 * 1.2 + 0.5 * rng.standard_normal(models)
    correct = right(rng, slope * (ability[:, None] - difficulty), guess=0.05)
    names = [f"{'open' if o else 'closed'}-{k:02d}" for k, o in enumerate(opened)]
    return Frame(
        {
            "model": np.repeat(names, 150),
            "question": questions * models,
            "correct": correct.ravel(),
            "released": np.repeat(dates("2023-01-09", released), 150),
            "weights": np.repeat(np.where(opened, "open", "closed"), 150),
        }
    )
