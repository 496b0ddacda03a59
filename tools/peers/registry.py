"""Which peers there are, and what each of them needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "peers"
DRIVERS = Path(__file__).resolve().parent / "drivers"


@dataclass(frozen=True)
class Environment:
    """Packages that are installed together, apart from everybody else's.

    Attributes:
        name: of the folder.
        packages: what pip is asked for, with their versions.
        driver: the script that runs in it.
    """

    name: str
    packages: tuple[str, ...]
    driver: str

    @property
    def python(self) -> Path:
        return FOLDER / self.name / "bin" / "python"

    @property
    def script(self) -> Path:
        return DRIVERS / self.driver


DPMM = Environment("dpmm", ("dpmm==0.1.9", "setuptools<80"), "with_dpmm.py")
# pip looks for a set of versions for ten minutes and more, uv for five seconds. With the versions
# that uv found, both only download: about 90 seconds, most of it torch, which MWEM does not use.
SMARTNOISE = Environment(
    "smartnoise",
    (
        "smartnoise-synth==1.0.8",
        "smartnoise-sql==1.0.10",
        "opendp==0.14.2",
        "mbi==1.1.0",
        "pac-synth==0.0.8",
        "pandas==2.3.3",
        "setuptools<80",
    ),
    "with_smartnoise.py",
)
ENVIRONMENTS = (DPMM, SMARTNOISE)


@dataclass(frozen=True)
class Peer:
    """A method, and where it runs.

    Attributes:
        title: its name in tables.
        environment: where it is installed.
        pure: whether it promises δ = 0.
    """

    title: str
    environment: Environment
    pure: bool = False


PEERS = {
    "aim": Peer("AIM (dpmm)", DPMM),
    "aim-3": Peer("AIM, asked for triples (dpmm)", DPMM),
    "mst": Peer("MST (dpmm)", DPMM),
    "privbayes": Peer("PrivBayes (dpmm)", DPMM),
    "mwem": Peer("MWEM (smartnoise-synth)", SMARTNOISE, pure=True),
    "mwem-split": Peer("MWEM, columns by threes (smartnoise-synth)", SMARTNOISE, pure=True),
}

# Looked at and left out: mbi 2.0.0 (private-pgm) is the library without its mechanisms; dpsynth and
# private-pgm are not on the index under these names; synthcity would bring torch for the AIM and
# PrivBayes that dpmm has too.
