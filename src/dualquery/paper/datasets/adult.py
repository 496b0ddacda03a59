"""Adult, the census extract of the UCI archive, cut into 235 bits as in the paper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.paper.datasets.bins import equal_bins

ROWS = 30_162
SHA256 = "540f3af4d70febe8f6e511f5626938582ac4c7efe6623dc7e8d8376d451a9d26"
URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data"

COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation",
    "relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week",
    "native_country", "income",
)  # fmt: skip

_WORKCLASS = (
    "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked"
)
_EDUCATION = (
    "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters "
    "1st-4th 10th Doctorate 5th-6th Preschool"
)
_MARITAL = (
    "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
    "Married-AF-spouse"
)
_OCCUPATION = (
    "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty "
    "Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving "
    "Priv-house-serv Protective-serv Armed-Forces"
)
_RELATIONSHIP = "Wife Own-child Husband Not-in-family Other-relative Unmarried"
_RACE = "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black"
_COUNTRY = (
    "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India "
    "Japan Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico "
    "Portugal Ireland France Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary "
    "Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador Trinadad&Tobago Peru Hong "
    "Holand-Netherlands"
)

UNUSED_RELATIONSHIPS = 54
"""Values of `relationship` that never occur. They are a slip of the authors' program, but they are
among its 235 bits, and so part of the queries whose error the paper reports."""


def schema() -> Schema:
    """The 15 attributes of the paper's experiments: 235 bits."""
    unused = tuple(f"unused-{number:02}" for number in range(1, UNUSED_RELATIONSHIPS + 1))
    return Schema(
        (
            equal_bins("age", 100, 20),
            Attribute.categorical("workclass", _WORKCLASS.split()),
            equal_bins("fnlwgt", 1_600_000, 20),
            Attribute.categorical("education", _EDUCATION.split()),
            equal_bins("education_num", 100, 10),
            Attribute.categorical("marital_status", _MARITAL.split()),
            Attribute.categorical("occupation", _OCCUPATION.split()),
            Attribute.categorical("relationship", (*_RELATIONSHIP.split(), *unused)),
            Attribute.categorical("race", _RACE.split()),
            Attribute.categorical("sex", ("Female", "Male")),
            equal_bins("capital_gain", 100_000, 10),
            equal_bins("capital_loss", 5_000, 10),
            equal_bins("hours_per_week", 100, 10),
            Attribute.categorical("native_country", _COUNTRY.split()),
            Attribute.categorical("income", ("<=50K", ">50K")),
        )
    )


def prepare(raw: BinaryIO) -> Iterator[bytes]:
    """The published file as a table with a header, without spaces and without incomplete rows."""
    yield ",".join(COLUMNS).encode() + b"\n"
    for line in raw:
        cells = [cell.strip() for cell in line.split(b",")]
        if len(cells) == len(COLUMNS) and b"?" not in cells:
            yield b",".join(cells) + b"\n"


SEVENTEEN = (
    ("sex", "Male"),
    ("income", ">50K"),
    ("race", "White"),
    ("native_country", "United-States"),
    ("workclass", "Private"),
    ("education", "HS-grad"),
    ("education", "Some-college"),
    ("education", "Bachelors"),
    ("marital_status", "Married-civ-spouse"),
    ("marital_status", "Never-married"),
    ("marital_status", "Divorced"),
    ("occupation", "Prof-specialty"),
    ("occupation", "Craft-repair"),
    ("occupation", "Exec-managerial"),
    ("relationship", "Husband"),
    ("relationship", "Not-in-family"),
    ("relationship", "Own-child"),
)
"""Seventeen bits for the comparison on a narrow table. The paper does not say which it took."""
