"""Public constraints: combinations of values that no record may have.

They are declared with the schema ("a husband is male"), so they say nothing about the private
rows. Every record that an oracle returns and every sampled record obeys them. A rule is kept as
conjunctions that must not hold: an implication A → B forbids A ∧ ¬b for each literal b of B. An
order forbids pairs of codes that leave no room for it (`domain.orders`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import QueryError, SchemaError
from dualquery.base.stored import Document
from dualquery.domain.dependences import read_dependences
from dualquery.domain.language import parse
from dualquery.domain.ordered import Attributes
from dualquery.domain.orders import Pairs, extended, order_clauses, read_order
from dualquery.domain.query import Literal, Query, conjunction

Records = npt.NDArray[np.integer]


Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Constraints:
    """Forbidden conjunctions, each with the rule it comes from.

    `forbidden[j]` stems from `entries[rule[j]]`, a plain dict as it stands in the schema
    file: `{"forbid": "sex=Male & relationship=Wife"}`,
    `{"if": "relationship=Husband", "then": "sex=Male"}`,
    `{"order": ["admitted", "discharged"]}` or `{"determines": {"region": "capital"}}`, which
    forbids nothing before it is settled.
    """

    schema: Attributes
    forbidden: tuple[Query, ...]
    rule: tuple[int, ...]
    entries: tuple[Document, ...]

    @classmethod
    def parse(cls, entries: Iterable[Document], schema: Attributes) -> Constraints | None:
        """Read `[[constraints]]`; None if they forbid nothing.

        Rules that no record can obey together are refused; the message names rules that contradict
        one another.
        """
        rules, queries, owner = [], [], []
        ordered: Pairs = frozenset()
        for number, entry in enumerate(entries):
            rules.append(dict(entry))
            if "order" in entry and len(entry) == 1:
                more, ordered = _out_of_order(entry, number + 1, schema, ordered)
            else:
                more = _forbidden(entry, number + 1, schema)
            queries += more
            owner += [number] * len(more)
        if not queries:
            return None
        made = cls(schema, tuple(queries), tuple(owner), tuple(rules))
        conflict = made.conflict()
        if conflict:
            named = "; ".join(made.describe(rule) for rule in conflict)
            raise SchemaError(f"no record can obey these constraints together: {named}")
        return made

    def __len__(self) -> int:
        return len(self.forbidden)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constraints) and (self.schema, self.entries) == (
            other.schema,
            other.entries,
        )

    def __hash__(self) -> int:
        return hash((self.rule, len(self.entries)))

    def describe(self, rule: int) -> str:
        """One rule, in words."""
        entry = self.entries[rule]
        if "forbid" in entry:
            return f"forbid {entry['forbid']}"
        if "order" in entry:
            return f"order {' <= '.join(entry['order'])}"
        if "determines" in entry:
            return "; ".join(f"{a} determines {b}" for a, b in entry["determines"].items())
        return f"if {entry['if']} then {entry['then']}"

    @cached_property
    def attributes(self) -> npt.NDArray[np.int32]:
        """The attributes that some rule mentions."""
        return np.unique([one.attribute for query in self.forbidden for one in query.literals])

    def holds(self, records: Records) -> npt.NDArray[np.bool_]:
        """Per record, whether it obeys every rule."""
        return np.asarray(~self.broken(records).any(axis=1))

    def broken(self, records: Records) -> npt.NDArray[np.bool_]:
        """Per record and rule, whether the record breaks the rule."""
        broken = np.zeros((len(records), len(self.entries)), dtype=bool)
        for clause, rule in zip(self._clauses, self.rule, strict=True):
            violated = np.ones(len(records), dtype=bool)
            for attribute, allowed in clause:
                violated &= allowed[records[:, attribute]]
            broken[:, rule] |= violated
        return broken

    def repair(
        self, records: Records, generator: np.random.Generator | None = None
    ) -> npt.NDArray[np.int32]:
        """The records, except that those which break a rule are changed in a few attributes.

        If possible, only attributes that a broken rule mentions are changed. With a generator the
        order in which attributes are tried is random, otherwise it is fixed.
        """
        mended = np.array(records, dtype=np.int32)
        for row in np.flatnonzero(~self.holds(mended)):
            mended[row] = self._mend(mended[row], generator)
        return mended

    def conflict(self) -> tuple[int, ...]:
        """Rules that no record can obey together, empty if there are none.

        If any of these rules is removed, some record obeys the others.
        """
        everything = tuple(range(len(self.entries)))
        if self._search(everything, None, None) is not None:
            return ()
        kept = list(everything)
        for rule in everything:
            without = [other for other in kept if other != rule]
            if self._search(without, None, None) is None:
                kept = without
        return tuple(kept)

    @cached_property
    def _clauses(self) -> list[list[tuple[int, Flags]]]:
        clauses = []
        for query in self.forbidden:
            clause = []
            for literal in query.literals:
                allowed = np.zeros(self.schema.attributes[literal.attribute].size, dtype=bool)
                allowed[list(literal.allowed(len(allowed)))] = True
                clause.append((literal.attribute, allowed))
            clauses.append(clause)
        return clauses

    def _mend(
        self, record: npt.NDArray[np.int32], generator: np.random.Generator | None
    ) -> npt.NDArray[np.int32]:
        broken: set[int] = set()
        for clause in self._clauses:
            if all(allowed[record[attribute]] for attribute, allowed in clause):
                broken |= {attribute for attribute, _ in clause}
        order = [int(a) for a in self.attributes]
        if generator is not None:
            generator.shuffle(order)
        order.sort(key=lambda attribute: attribute in broken)
        found = self._search(tuple(range(len(self.entries))), record, order)
        if found is None:
            raise SchemaError("no record obeys the constraints")
        mended = record.copy()
        for attribute, code in found.items():
            mended[attribute] = code
        return mended

    def _search(
        self,
        rules: Sequence[int],
        prefer: npt.NDArray[np.int32] | None,
        order: Sequence[int] | None,
    ) -> dict[int, int] | None:
        """Codes for the mentioned attributes that obey some rules, found by backtracking.

        Each choice strikes out the codes of other attributes that would complete a forbidden
        clause. The preferred code of an attribute is tried first, then the codes after it. Rules
        are few and small, so this plain search is fast enough.

        Returns:
            A code per mentioned attribute, or None if no codes obey the rules.
        """
        wanted = set(rules)
        clauses = [c for c, r in zip(self._clauses, self.rule, strict=True) if r in wanted]
        domains = {
            int(a): np.ones(self.schema.attributes[a].size, dtype=bool) for a in self.attributes
        }
        touching: dict[int, list[int]] = {attribute: [] for attribute in domains}
        for position, clause in enumerate(clauses):
            for attribute, _ in clause:
                touching[attribute].append(position)

        def prune(assigned: dict[int, int], at: Iterable[int]) -> list[tuple[int, Flags]] | None:
            """Strike out codes that would complete a forbidden clause; None if a domain is empty.

            What is returned undoes it: the domains as they were.
            """
            undo: list[tuple[int, Flags]] = []
            for position in at:
                open_part = None
                for attribute, allowed in clauses[position]:
                    if attribute in assigned:
                        if not allowed[assigned[attribute]]:
                            break
                    elif open_part is None:
                        open_part = (attribute, allowed)
                    else:
                        break
                else:
                    if open_part is None:
                        _restore(domains, undo)
                        return None
                    attribute, allowed = open_part
                    undo.append((attribute, domains[attribute]))
                    domains[attribute] = domains[attribute] & ~allowed
                    if not domains[attribute].any():
                        _restore(domains, undo)
                        return None
            return undo

        def extend(assigned: dict[int, int]) -> dict[int, int] | None:
            left = [a for a in (order or domains) if a not in assigned]
            if not left:
                return dict(assigned)
            forced = [a for a in left if domains[a].sum() == 1]
            attribute = forced[0] if forced else left[0]
            size = len(domains[attribute])
            shift = 0 if prefer is None else int(prefer[attribute])
            for step in range(size):
                code = (shift + step) % size
                if not domains[attribute][code]:
                    continue
                assigned[attribute] = code
                undo = prune(assigned, touching[attribute])
                if undo is not None:
                    found = extend(assigned)
                    if found is not None:
                        return found
                    _restore(domains, undo)
                del assigned[attribute]
            return None

        if prune({}, range(len(clauses))) is None:
            return None
        return extend({})


def _restore(domains: dict[int, Flags], undo: list[tuple[int, Flags]]) -> None:
    for attribute, domain in reversed(undo):
        domains[attribute] = domain


def _out_of_order(
    entry: Document, number: int, schema: Attributes, known: Pairs
) -> tuple[list[Query], Pairs]:
    """The conjunctions that an order forbids, and what is then known of pairs of columns.

    What follows from this rule and those above it is forbidden by this rule.
    """
    places = read_order(entry["order"], number, schema)
    after = extended(known, places, number, schema)
    own = [(a, b) for i, a in enumerate(places) for b in places[i + 1 :] if (a, b) not in known]
    pairs = [*own, *sorted(after - known - set(own))]
    return [Query("conjunction", clause) for clause in order_clauses(pairs, schema)], after


def _forbidden(entry: Document, number: int, schema: Attributes) -> list[Query]:
    """The conjunctions that one entry of `[[constraints]]` forbids."""
    keys = set(entry)
    if keys not in ({"forbid"}, {"if", "then"}, {"order"}, {"determines"}):
        raise SchemaError(
            f"constraint {number}: expected `forbid`, `if` and `then`, `order` or `determines`, "
            f"found {', '.join(sorted(map(str, keys))) or 'nothing'}"
        )
    if "determines" in entry:
        read_dependences(entry["determines"], number, schema)
        return []
    if "forbid" in entry:
        return [_read(entry["forbid"], number, schema)]
    premise = _read(entry["if"], number, schema)
    queries = []
    for literal in _read(entry["then"], number, schema).literals:
        opposite = Literal(literal.attribute, literal.codes, not literal.negated)
        if not opposite.allowed(schema.attributes[literal.attribute].size):
            continue
        try:
            queries.append(conjunction([*premise.literals, opposite], schema))
        except QueryError:
            continue  # the premise already implies this part
    return queries


def _read(text: object, number: int, schema: Attributes) -> Query:
    if not isinstance(text, str):
        raise SchemaError(f"constraint {number}: {text!r} is not a query in quotes")
    try:
        query = parse(text, schema)
    except (QueryError, SchemaError) as error:
        raise SchemaError(f"constraint {number}: {error}") from None
    if query.kind != "conjunction":
        raise SchemaError(f"constraint {number}: {text!r} is a parity; expected a conjunction")
    return query
