"""What users of scikit-learn and of notebooks expect of an estimator."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, Self

from dualquery.base.errors import ParameterError, ReleaseError
from dualquery.base.similar import did_you_mean
from dualquery.domain.schema import Schema
from dualquery.release.release import Release


def as_schema(schema: object) -> Schema:
    """A schema, or the one that a file holds."""
    if isinstance(schema, str | Path):
        return Schema.load(schema).require_reviewed(schema)
    if not isinstance(schema, Schema):
        kind = type(schema).__name__
        raise ParameterError(f"schema is a {kind}; expected a Schema, or the path of a schema file")
    return schema


class Estimator:
    """Parameters by name, and what the last `fit` made.

    Settings are values and do not change; `set_params` is the exception that scikit-learn needs.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name. `deep` is there for scikit-learn; no setting has settings."""
        return {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]  # subclasses are dataclasses

    def set_params(self, **params: object) -> Self:
        """Change settings by name."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise ParameterError(
                    f"there is no setting {name!r}{did_you_mean(name, list(known))}"
                )
        for name, value in params.items():
            object.__setattr__(self, name, value)
        return self

    @property
    def release_(self) -> Release:
        """What the last `fit` or `release` made; both also return it."""
        made = self.__dict__.get("_made_last")
        if made is None:
            raise ReleaseError("nothing was fitted yet; call fit first")
        return made  # type: ignore[no-any-return]  # only `_keep` puts it there

    def sample(self, rows: int, **options: Any) -> Any:
        """Synthetic rows of the last release; the arguments are those of `Release.sample`."""
        return self.release_.sample(rows, **options)

    def _keep(self, made: Release) -> Release:
        object.__setattr__(self, "_made_last", made)
        return made
