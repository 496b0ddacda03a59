"""Files of Stata, SPSS and SAS, through pyreadstat. Private side.

Such a file declares for each column whether it holds numbers or text, and how numbers are shown:
some count days or seconds. Nothing else decides how a cell is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dualquery.base.errors import TableError
from dualquery.domain.types import text_of
from dualquery.rows.arrow import ArrowTable, refuse_repeated
from dualquery.rows.documented import Documented
from dualquery.rows.files.needed import needed

ROWS_AT_ONCE = 1 << 16
"""How many rows are read at a time, as Python objects."""

_READERS = {
    ".dta": "read_dta", ".sav": "read_sav", ".zsav": "read_sav",
    ".sas7bdat": "read_sas7bdat", ".xpt": "read_xport",
}  # fmt: skip
ENDINGS = tuple(_READERS)

_DAYS = re.compile(
    r"A?DATE\d*|[ESJ]DATE\d*|%-?t?d.*|(MM|DD|YY)(MM|DD|YY)(DD|YY)?[BCDNPS]?\d*|YYMMDD.*|MMDDYY.*"
    r"|DDMMYY.*|(E8601|B8601)DA\d*"
)
_MOMENTS = re.compile(r"DATETIME[\d.]*|YMDHMS[\d.]*|%-?t[cC].*|(E8601|B8601)D[TN][\d.]*")
_TIMES = re.compile(r"M?TIME[\d.]*|(E8601|B8601)TM[\d.]*|HHMM[\d.]*")

_WIDTH = re.compile(r"\d*\.?\d*\Z")
"""What follows the name of a format: how many characters are shown."""

_SPSS = -12_219_379_200
"""14 October 1582, from which SPSS counts seconds, in seconds from 1970."""

_SAS = -315_619_200
"""1 January 1960, from which Stata and SAS count, in seconds from 1970."""


class StatisticsTable(ArrowTable):
    """A file of Stata, SPSS or SAS, read in parts, with what it says about its columns."""

    def __init__(self, path: Path, encoding: str | None = None) -> None:
        self.path, self.encoding = path, encoding
        self.family = path.suffix.lower()
        self._module = needed("pyreadstat", "statistics", f"a {self.family} file")
        _, told = self._read(metadataonly=True)
        refuse_repeated(told.column_names)
        super().__init__(told.column_names)
        self.is_text = {name: kind == "string" for name, kind in
                        told.readstat_variable_types.items()}  # fmt: skip
        formats = told.original_variable_types
        self.shown_as = {name: str(formats.get(name) or "") for name in self.header}
        words = self._catalogue() if self.family == ".sas7bdat" else {}
        self.documented = {
            name: _documentation(name, told, words.get(_WIDTH.sub("", self.shown_as[name]), {}))
            for name in self.header
        }

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        asked, first = list(names) or list(self.header[:1]), 0
        while True:
            cells, _ = self._read(usecols=asked, row_offset=first, row_limit=ROWS_AT_ONCE)
            rows = len(cells[asked[0]]) if cells else 0
            if rows:
                arrays = [self._column(name, cells[name]) for name in asked]
                batch = pa.RecordBatch.from_arrays(arrays, names=asked)
                yield batch if names else batch.select([])
            first += rows
            if rows < ROWS_AT_ONCE:
                return

    def _read(self, **options: Any) -> tuple[Mapping[str, Sequence[object]], Any]:
        read: Callable[..., Any] = getattr(self._module, _READERS[self.family])
        if self.family in (".sav", ".zsav"):
            options["user_missing"] = True  # the schema says which codes are missing cells
        if self.encoding is not None:
            options["encoding"] = self.encoding
        try:
            found: tuple[Mapping[str, Sequence[object]], Any] = read(
                str(self.path), output_format="dict", disable_datetime_conversion=True, **options
            )
        except Exception as error:  # of pyreadstat, whose text may quote a cell
            way = "" if self.encoding else "; if its text is not UTF-8, say --encoding windows-1252"
            raise TableError(
                f"cannot read {str(self.path)!r}: it is damaged, or no {self.family} file "
                f"({type(error).__name__}){way}"
            ) from None
        return found

    def _catalogue(self) -> Mapping[str, Mapping[object, object]]:
        """What values are called, by format: SAS keeps that in a file beside the table."""
        for name in (f"{self.path.stem}.sas7bcat", "formats.sas7bcat"):
            file = self.path.with_name(name)
            if not file.is_file():
                continue
            try:
                found: Mapping[str, Mapping[object, object]] = self._module.read_sas7bcat(
                    str(file), **({} if self.encoding is None else {"encoding": self.encoding})
                )[1].value_labels
            except Exception as error:  # of pyreadstat
                raise TableError(
                    f"cannot read {str(file)!r}, which says what values of {self.path.name!r} are "
                    f"called: it is damaged, or no SAS catalogue ({type(error).__name__})"
                ) from None
            return found
        return {}

    def _column(self, name: str, cells: Sequence[object]) -> pa.Array:
        if self.is_text[name]:
            return pa.array([cell if cell != "" else None for cell in cells], pa.string())
        numbers = np.array([np.nan if cell is None else cell for cell in cells], dtype=float)
        gone, shown = np.isnan(numbers), self.shown_as[name]
        kinds = ((_DAYS, pa.date32()), (_MOMENTS, pa.timestamp("s")), (_TIMES, pa.time32("s")))
        kind = next((kind for form, kind in kinds if form.fullmatch(shown)), None)
        if kind is None:
            return pa.array(numbers, mask=gone)
        counted = self._seconds(numbers, kind)
        fits = np.abs(np.where(gone, 0.0, counted)) < 2.0**40
        counted = np.floor(
            np.where(gone, 0.0, np.where(fits, counted, 2.0**40))
        )  # no day: it is refused
        if kind == pa.date32():
            days = np.clip(np.floor(counted / 86_400), -(2**31), 2**31 - 1).astype(np.int32)
            return pa.array(days, mask=gone).cast(kind)
        if kind == pa.time32("s"):  # a number that is no time of day stays what it is
            return pa.array(np.clip(counted, -1, 2**31 - 1).astype(np.int32), mask=gone).cast(kind)
        return pa.array(counted.astype(np.int64), mask=gone).cast(kind)

    def _seconds(self, numbers: Any, kind: pa.DataType) -> Any:
        """Seconds from 1970, or from midnight, of what the program counts."""
        if kind == pa.time32("s"):
            return numbers
        if self.family in (".sav", ".zsav"):
            return numbers + _SPSS
        if kind == pa.date32():
            return numbers * 86_400 + _SAS
        return (numbers / 1000 if self.family == ".dta" else numbers) + _SAS


def _documentation(name: str, told: Any, words: Mapping[object, object]) -> Documented:
    labels = told.variable_value_labels.get(name, {}) or words
    missing = told.missing_ranges.get(name, ())
    points = [one["lo"] for one in missing if one["lo"] == one["hi"]]
    level = told.variable_measure.get(name, "")
    return Documented(
        label=str(told.column_names_to_labels.get(name) or "").strip(),
        labels=tuple((text_of(value), str(text)) for value, text in labels.items()),
        missing=tuple(text_of(point) for point in points),
        ranges=tuple((one["lo"], one["hi"]) for one in missing if one["lo"] != one["hi"]),
        level="" if level == "unknown" else level,
    )
