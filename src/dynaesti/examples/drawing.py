"""What the data sets are drawn with: logistic answers, graded answers, dates."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from dynaesti.core import Array, Ints


def right(rng: np.random.Generator, predictor: Any, guess: float = 0.0) -> Ints:
    """Answers 0 and 1 with log odds `predictor`, of which some are guessed right."""
    chance = guess + (1 - guess) * expit(np.asarray(predictor, dtype=np.float64))
    return (rng.uniform(size=chance.shape) < chance).astype(np.int64)


def graded(rng: np.random.Generator, predictor: Array, thresholds: Array) -> Ints:
    """Categories 0, 1, … of a graded model: the thresholds that a logistic draw is above."""
    latent = predictor + rng.logistic(size=predictor.shape)
    return np.asarray((latent[..., None] > thresholds).sum(axis=-1), dtype=np.int64)


def dates(start: str, days: Any) -> npt.NDArray[np.str_]:
    """Days after a date, written as dates."""
    return np.asarray((np.datetime64(start, "D") + np.floor(days).astype(np.int64)).astype(str))


def stamps(start: str, days: Any) -> npt.NDArray[np.str_]:
    """Days after a date with their time of day, written to the second."""
    seconds = np.round(np.asarray(days) * 86400).astype(np.int64)
    return np.asarray((np.datetime64(start, "s") + seconds).astype(str))
