"""The paper's way of cutting a number into bits."""

from __future__ import annotations

from dualquery.domain.attributes import Attribute


def equal_bins(name: str, maximum: float, bins: int) -> Attribute:
    """A numeric attribute with range [0, maximum] in equal bins, the last one closed."""
    edges = [maximum * i / bins for i in range(bins + 1)]
    whole = all(edge == int(edge) for edge in edges)
    return Attribute.numeric(name, [int(edge) for edge in edges] if whole else edges)
