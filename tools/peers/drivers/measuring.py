"""Shared by the drivers: the time of the method alone, without imports, and the peak of memory."""

import json
import resource
import time


def used() -> float:
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in found)


class Measured:
    """A context; at its end one line of JSON says what was used."""

    def __enter__(self) -> "Measured":
        self.clock, self.processor = time.perf_counter(), used()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            told = {
                "seconds": time.perf_counter() - self.clock,
                "processor_seconds": used() - self.processor,
                "peak_bytes": peak,
            }
            print("\n" + json.dumps(told))
