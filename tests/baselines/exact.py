"""The exact laws of the noise, for enumerations."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr


def log_laplace(away: np.ndarray, scale: float) -> np.ndarray:
    """Log-probability of discrete Laplace noise of these sizes."""
    shrink = math.exp(-1.0 / scale)
    return math.log((1.0 - shrink) / (1.0 + shrink)) - np.abs(away) / scale


def log_rounded_gaussian(away: np.ndarray, sigma: float) -> np.ndarray:
    """Log-probability of round(σN) being of these sizes."""
    size = np.abs(away)
    high, low = log_ndtr(-(size - 0.5) / sigma), log_ndtr(-(size + 0.5) / sigma)
    return high + np.log1p(-np.exp(low - high))


def hockey_stick(one: np.ndarray, other: np.ndarray, epsilon: float) -> float:
    """The δ at which outcomes with these log-probabilities are (ε, δ)-close."""
    return float(np.maximum(np.exp(one) - np.exp(epsilon + other), 0.0).sum())
