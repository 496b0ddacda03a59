"""Who publishes a release, under which name and terms: words of the curator, never of the table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import date
from typing import Any

from dualquery.base.checks import refusal
from dualquery.base.errors import ParameterError
from dualquery.base.similar import did_you_mean

_LINK = re.compile(r"https?://[^\s<>\"']+\Z")
_MAIL = re.compile(r"[^\s<>\"'@?&]+@[^\s<>\"'@?&]+\Z")


@dataclass(frozen=True)
class About:
    """What the page of a release says about its origin; whatever is empty is left out.

    Attributes:
        title: the name of the release.
        description: what the table is about, in a few sentences.
        publisher: who publishes the release.
        date: the day of publication, such as 2026-11-16.
        contact: an address for questions: mail or web.
        licence: the terms of use: the name of a licence, or its address.
        citation: how to cite the release; left out, it is put together from the other fields.
        url: where the release is published.
        records: what the rows of the table are, in one word or a few, such as "adults".
    """

    title: str = ""
    description: str = ""
    publisher: str = ""
    date: str = ""
    contact: str = ""
    licence: str = ""
    citation: str = ""
    url: str = ""
    records: str = ""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not isinstance(value, str):
                raise refusal(f"about: {name}", value, "text")
        if self.date:
            try:
                date.fromisoformat(self.date)
            except ValueError:
                raise refusal("about: date", self.date, "a day such as 2026-11-16") from None
        if self.url and not _LINK.match(self.url):
            raise refusal("about: url", self.url, "an address that begins with https://")

    @classmethod
    def of(cls, content: object) -> About:
        """An `About`, or a mapping of its fields such as the table `[about]` of a schema file."""
        if isinstance(content, About):
            return content
        if content is None:
            return cls()
        if not isinstance(content, Mapping):
            raise ParameterError(f"about is a {type(content).__name__}; expected a table of texts")
        known = [one.name for one in fields(cls)]
        made: dict[str, Any] = {"licence" if k == "license" else k: v for k, v in content.items()}
        for name in made:
            if name not in known:
                hint = did_you_mean(str(name), known) or f"; expected {', '.join(known)}"
                raise ParameterError(f"about: unknown key {name!r}{hint}")
        if isinstance(made.get("date"), date):  # TOML has days of its own
            made["date"] = made["date"].isoformat()
        return cls(**made)

    def under(self, other: About) -> About:
        """The same, where `other` says nothing else."""
        return About(**{**self.to_dict(), **other.to_dict()})

    def to_dict(self) -> dict[str, str]:
        """The fields that are not empty."""
        return {name: value for name, value in asdict(self).items() if value}

    @property
    def heading(self) -> str:
        """The name of the release; without one, what it is."""
        return self.title or "A differentially private release"

    def cited(self, promise: str) -> str:
        """How to cite the release.

        Args:
            promise: what it promises, in a few words.
        """
        if self.citation:
            return self.citation
        year = f" ({self.date[:4]})" if self.date else ""
        origin = f"{self.publisher}{year}. " if self.publisher else ""
        title = self.heading + (year if not self.publisher else "")
        where = f" {self.url}" if self.url else ""
        return f"{origin}{title}. Synthetic data, {promise}.{where}"


NOTHING = About()
"""What is said of a release whose curator said nothing."""


def link(text: str) -> str | None:
    """The address behind a contact or a licence that is one; None for plain words."""
    if _LINK.match(text):
        return text
    return f"mailto:{text}" if _MAIL.match(text) else None
