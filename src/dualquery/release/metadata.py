"""What a file of sampled rows holds, in the words of data portals.

Two descriptions say the same: a Data Package with a Table Schema (Frictionless), and Croissant 1.0,
which is JSON-LD. Both follow from the schema and from what the curator said about the release.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from dualquery.base.errors import ParameterError, ReleaseError
from dualquery.base.files import write_whole
from dualquery.base.stored import Json
from dualquery.domain.about import link
from dualquery.domain.attributes import Attribute
from dualquery.domain.types import Type
from dualquery.release.published import Published
from dualquery.release.table_schema import column_words, columns, table_schema
from dualquery.version import __version__

ENDINGS = {"datapackage": ".datapackage.json", "croissant": ".croissant.json"}
CODEBOOK = ".codebook.html"

_MEDIA = {
    ".csv": ("csv", "text/csv"),
    ".csv.gz": ("csv", "application/gzip"),
    ".parquet": ("parquet", "application/vnd.apache.parquet"),
    ".pq": ("parquet", "application/vnd.apache.parquet"),
}

_CROISSANT_TYPES = {
    Type.TEXT: "sc:Text",
    Type.WHOLE: "sc:Integer",
    Type.DECIMAL: "sc:Float",
    Type.YES_NO: "sc:Boolean",
    Type.DATE: "sc:Date",
    Type.TIMESTAMP: "sc:DateTime",
    Type.TIME: "sc:Text",
}

CROISSANT = "http://mlcommons.org/croissant/1.0"

_CROISSANT_WORDS = (
    "citeAs", "column", "extract", "field", "fileObject", "fileProperty", "fileSet", "format",
    "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet",
    "references", "regex", "repeated", "replace", "separator", "source", "subField", "transform",
)  # fmt: skip

CONTEXT: Json = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{word: f"cr:{word}" for word in _CROISSANT_WORDS},
}
"""The words of Croissant 1.0, as its readers expect them."""

WANTED = {"licence": "license", "url": "url", "publisher": "creator", "date": "datePublished"}
"""What Croissant requires and only the curator can say, with its word for it."""


@dataclass(frozen=True)
class Described:
    """A file of sampled rows, as a description names it."""

    name: str
    size: int
    digest: str

    @classmethod
    def of(cls, path: Path) -> Described:
        """The file at a path; what cannot be described is refused."""
        media_of(path)
        try:
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise ReleaseError(f"cannot read {str(path)!r}: {error.strerror}") from None
        return cls(path.name, path.stat().st_size, digest)


def media_of(path: Path) -> tuple[str, str]:
    """The format of a file and its media type, by its name."""
    for ending, found in sorted(_MEDIA.items(), key=lambda one: -len(one[0])):
        if path.name.lower().endswith(ending):
            return found
    raise ParameterError(
        f"cannot describe {path.name!r}; expected a file of rows: .csv, .csv.gz or .parquet"
    )


def stem_of(path: Path) -> Path:
    """The path of a file of rows without its ending."""
    name = re.sub(r"\.(csv\.gz|csv|parquet|pq)\Z", "", path.name, flags=re.IGNORECASE)
    return path.with_name(name)


def description_files(path: Path) -> dict[str, Path]:
    """Where the descriptions of a file of rows are written: beside it, under its name."""
    stem = stem_of(path)
    endings = {**ENDINGS, "codebook": CODEBOOK}
    return {kind: stem.with_name(stem.name + ending) for kind, ending in endings.items()}


def check_descriptions_free(path: Path, *, overwrite: bool) -> None:
    """Refuse descriptions that exist, before any work is done."""
    media_of(path)
    for file in description_files(path).values():
        if file.exists() and not overwrite:
            raise ReleaseError(
                f"{str(file)!r} exists",
                python="choose another name or say overwrite=True",
                command="choose another name or pass --overwrite",
            )


def write_descriptions(
    release: Published, path: Path, *, overwrite: bool = False
) -> dict[str, Path]:
    """Write the descriptions of a file of rows and its codebook, and say where they are."""
    from dualquery.release.page.codebook import render_codebook

    check_descriptions_free(path, overwrite=overwrite)
    file, found = Described.of(path), description_files(path)
    for kind, content in (
        ("datapackage", data_package(release, path, file)),
        ("croissant", croissant(release, path, file)),
    ):
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        write_whole(found[kind], text + "\n")
    write_whole(found["codebook"], render_codebook(release))
    return found


def unsaid(release: Published) -> list[str]:
    """What portals want to know and nobody said."""
    said = release.about.to_dict()
    return [name for name in WANTED if name not in said]


# The Data Package


def data_package(release: Published, path: Path, file: Described) -> Json:
    """A Data Package of one resource, with a Table Schema.

    Args:
        release: where the rows come from.
        path: of the file of rows.
        file: what the file is.
    """
    form, media = media_of(path)
    tabular = form == "csv"
    resource: Json = {
        "name": _slug(stem_of(path).name),
        "path": file.name,
        "profile": "tabular-data-resource" if tabular else "data-resource",
        "format": form,
        "mediatype": media,
        "bytes": file.size,
        "hash": f"sha256:{file.digest}",
        "schema": table_schema(release),
    }
    if tabular:
        resource["encoding"] = "utf-8"
    return {
        "profile": "tabular-data-package" if tabular else "data-package",
        "name": _slug(release.about.title or stem_of(path).name),
        "title": release.about.heading,
        "description": _told(release),
        **_terms(release),
        "resources": [resource],
    }


def _terms(release: Published) -> Json:
    """Licence, publisher and address, as far as they were said."""
    about = release.about
    made: Json = {}
    if about.url:
        made["homepage"] = about.url
    if about.licence:
        where = link(about.licence)
        named = {"path": where} if where else {"name": re.sub(r"\s+", "-", about.licence)}
        made["licenses"] = [{**named, "title": about.licence}]
    if about.publisher:
        person = {"title": about.publisher, "role": "publisher"}
        if (link(about.contact) or "").startswith("mailto:"):
            person["email"] = about.contact
        made["contributors"] = [person]
    if about.date:
        made["datePublished"] = about.date
    privacy: Json = {"epsilon": release.privacy.epsilon, "delta": release.privacy.delta}
    if release.privacy.stamp:
        privacy = {"stamp": release.privacy.stamp}
    return {**made, "privacy": privacy, "sources": [{"title": f"dualquery {__version__}"}]}


# Croissant


def croissant(release: Published, path: Path, file: Described) -> Json:
    """A Croissant description: a data set of one file with one set of records.

    Args:
        release: where the rows come from.
        path: of the file of rows.
        file: what the file is.
    """
    about = release.about
    made: Json = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CROISSANT,
        "name": about.title or stem_of(path).name,
        "description": _told(release),
        "citeAs": release.citation,
    }
    if about.licence:
        made["license"] = link(about.licence) or about.licence
    if about.url:
        made["url"] = about.url
    if about.publisher:
        body = {"@type": "sc:Organization", "name": about.publisher}
        made |= {"creator": body, "publisher": body}
    if about.date:
        made["datePublished"] = about.date
    made["distribution"] = [
        {
            "@type": "cr:FileObject",
            "@id": file.name,
            "name": file.name,
            "contentUrl": file.name,
            "contentSize": f"{file.size} B",
            "encodingFormat": media_of(path)[1],
            "sha256": file.digest,
        }
    ]
    made["recordSet"] = [
        {
            "@type": "cr:RecordSet",
            "@id": "rows",
            "name": "rows",
            "description": "Synthetic rows, one per record.",
            "field": [_croissant_field(attribute, file.name) for attribute in columns(release)],
        }
    ]
    return made


def _croissant_field(attribute: Attribute, file: str) -> Json:
    kind = Type.TEXT if attribute.answer is not None else attribute.type
    return {
        "@type": "cr:Field",
        "@id": f"rows/{attribute.column}",
        "name": attribute.column,
        "description": column_words(attribute),
        "dataType": _CROISSANT_TYPES[kind],
        "source": {"fileObject": {"@id": file}, "extract": {"column": attribute.column}},
    }


# Words


def _told(release: Published) -> str:
    """The curator's words, and where the rows come from."""
    own = f"{release.about.description} " if release.about.description else ""
    rows = f"Synthetic rows from a release of a private table, {release.promise}."
    unknown = ""
    if release.unknown:
        unknown = (
            f" {len(release.unknown):,} columns hold their declared default only, because the "
            "release knows nothing about them."
        )
    return f"{own}{rows}{unknown}"


def _slug(text: str) -> str:
    """A name as Data Packages allow it."""
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-.") or "rows"
