"""Constants of the exact weights, shared by `shards` and its kernels."""

from __future__ import annotations

CLIP = -600.0
"""Logarithms of weights are kept above this: range and support stay as they are, and no weight
is subnormal."""

BUCKETS = 866
"""⌊600·log₂e⌋ + 1: one bucket per power of two down to the clip."""
