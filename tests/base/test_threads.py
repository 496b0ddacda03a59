"""Ranges cover everything once, on as many threads as the work deserves."""

from __future__ import annotations

import threading

import pytest

from dualquery.base.threads import SMALL, over_ranges


@pytest.mark.parametrize(("work", "elsewhere"), [(SMALL, True), (SMALL - 1, False)])
def test_little_work_stays_on_the_calling_thread(
    work: int, elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUALQUERY_THREADS", "2")
    seen: list[int] = []
    threads: list[str] = []

    def task(first: int, last: int) -> None:
        seen.extend(range(first, last))
        threads.append(threading.current_thread().name)

    over_ranges(task, 5, grain=1, work=work)
    assert sorted(seen) == list(range(5))
    assert all(name.startswith("dualquery") for name in threads) is elsewhere
