"""`python -m tools.mutants [--only NAME…] [--list]`: try the mutants, and write the page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.mutants.catalogue import MUTANTS
from tools.mutants.mutant import Mutant, MutantError, problems
from tools.mutants.page import PAGE, listed, rendered
from tools.mutants.trial import Outcome, run_all

ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        help="these mutants alone; a name ending in * stands for all that begin so",
    )
    parser.add_argument("--list", action="store_true", help="name the mutants and end")
    options = parser.parse_args(arguments)
    try:
        chosen = choose(options.only)
        if options.list:
            print("\n".join(mutant.name for mutant in chosen))
            return 0
        wrong = list(problems(chosen, ROOT))
        if wrong:
            raise MutantError("\n".join(wrong))
        outcomes = run_all(chosen, ROOT, tell)
    except MutantError as error:
        print(error, file=sys.stderr)
        return 2
    write_page(outcomes)
    survivors = [outcome for outcome in outcomes if not outcome.killed]
    print(f"{len(outcomes)} mutants, {len(survivors)} survived")
    return 1 if survivors else 0


def choose(names: Sequence[str] | None) -> list[Mutant]:
    """The mutants of these names, or all of them."""
    if names is None:
        return list(MUTANTS)
    chosen = [mutant for mutant in MUTANTS if any(_matches(name, mutant) for name in names)]
    for name in names:
        if not any(_matches(name, mutant) for mutant in chosen):
            raise MutantError(f"there is no mutant {name}; --list names them")
    return chosen


def _matches(name: str, mutant: Mutant) -> bool:
    return mutant.name == name or (name.endswith("*") and mutant.name.startswith(name[:-1]))


def tell(outcome: Outcome) -> None:
    print(
        f"{'killed  ' if outcome.killed else 'SURVIVED'} {outcome.mutant.name} "
        f"({outcome.seconds:.0f} s)",
        flush=True,
    )
    for test in outcome.missed:
        print(f"         not failed: {test}", flush=True)
    if outcome.missed:
        print(f"         pytest: {outcome.said.strip().splitlines()[-1].strip('= ')}", flush=True)


def write_page(outcomes: Sequence[Outcome]) -> None:
    """A row for every mutant that was killed now, or was killed before and not tried now."""
    page = ROOT / PAGE
    names = listed(page.read_text(encoding="utf-8")) if page.is_file() else set()
    for outcome in outcomes:
        (names.add if outcome.killed else names.discard)(outcome.mutant.name)
    text = rendered([mutant for mutant in MUTANTS if mutant.name in names])
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
