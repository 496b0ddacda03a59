"""`tools.house` works, and finds no import cycle."""

from __future__ import annotations

import pytest
from tools import house


def test_no_module_and_no_room_is_in_a_circle() -> None:
    graph = house.import_graph()
    assert "dualquery.rows.encoding" in graph["dualquery.rows.table"]
    assert house.cycles(graph) == []
    assert house.cycles(house.rooms(graph)) == []


def test_no_room_goes_round_by_the_entrance() -> None:
    """`dualquery` exports names of private rooms, so no room may import `dualquery` itself."""
    graph = house.import_graph()
    assert [module for module, imported in graph.items() if "dualquery" in imported] == []


def test_a_circle_would_be_seen() -> None:
    graph = {"p.a": {"p.b"}, "p.b": {"p.c"}, "p.c": {"p.a"}, "p.d": {"p.a"}}
    assert house.cycles(graph) == [["p.a", "p.b", "p.c"]]


def test_it_prints_every_section(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house.shutil, "which", lambda name: None)
    house.main()
    out = capsys.readouterr().out
    for title in (
        "rooms and what they import:",
        "import cycles: 0",
        "cycles between rooms: 0",
        "imports the most modules:",
        "is imported by the most modules:",
        "longest modules:",
        "longest functions:",
        "lines with Any:",
        "no Args:",
        "duplicated lines:",
    ):
        assert title in out
