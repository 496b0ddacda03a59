"""Mistakes in the choice of tables: its range, what scores may read, and what is paid for it."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

_CHOOSING = "src/dualquery/privacy/choosing.py"
_STEP = "src/dualquery/game/choosing.py"
_PURSE = "src/dualquery/privacy/purse.py"
_TESTS = "tests/privacy/test_choosing.py"
_ROUNDS = "tests/game/test_choosing.py"
_OUTCOMES = f"{_TESTS}::test_every_outcome_of_a_choice_is_as_private_as_it_states"
_RANGE = f"{_TESTS}::test_the_range_of_a_draw"
_PAID = f"{_TESTS}::test_every_draw_is_paid_for_as_one_after_the_other"
_SHARE = f"{_TESTS}::test_a_share_buys_what_it_says"
_PERSON = (
    "tests/privacy/test_persons.py::"
    "test_a_person_moves_a_choice_of_tables_no_further_than_is_charged"
)
_WEIGHT = (
    "tests/privacy/test_weights.py::"
    "test_a_weighted_record_moves_a_choice_of_tables_no_further_than_is_charged"
)

MUTANTS = (
    Mutant(
        "choice-range-halved",
        _CHOOSING,
        "    ideal = 2.0 * temperature * neighbours.table_l1\n",
        "    ideal = temperature * neighbours.table_l1\n",
        (_OUTCOMES, _RANGE, _PERSON, _WEIGHT),
        "The score of one table rises while that of another falls; only one of them is charged.",
    ),
    Mutant(
        "choice-of-a-person-charged-as-one-record",
        _CHOOSING,
        "temperature * neighbours.table_l1\n",
        "temperature * getattr(neighbours, 'neighbours', neighbours).table_l1\n",
        (_RANGE, _PERSON, _WEIGHT),
        "A person with several records, or a record with a weight, moves scores further.",
    ),
    Mutant(
        "choice-rounding-not-charged",
        _CHOOSING,
        "    return ideal + ROUNDING_CHARGE * max(1.0, ideal)\n",
        "    return ideal\n",
        (_RANGE,),
        "Computed weights are rounded, and nobody pays for it.",
    ),
    Mutant(
        "choice-penalty-reads-the-rows",
        _CHOOSING,
        "np.add.reduceat(apart, start) - expected.penalty\n",
        "np.add.reduceat(apart - (0.8 * FINENESS * np.sqrt(counts)).astype(np.int64), start)\n",
        (_OUTCOMES,),
        "What chance would show, computed from the private counts: it moves with the rows, too.",
    ),
    Mutant(
        "choice-against-the-private-number-of-rows",
        _STEP,
        "        expected = against.of(batch)\n",
        "        rows = float(tabulate(batch).sum()) / len(batch)\n"
        "        expected = Against(against.shares, rows, against.noise).of(batch)\n",
        (f"{_OUTCOMES}[add-remove]",),
        "Under add-remove the number of rows is private, and expectations would move with it.",
    ),
    Mutant(
        "choice-of-several-tables-charged-as-one",
        _CHOOSING,
        "choice_range(self.temperature, neighbours)),) * len(self)\n",
        "choice_range(self.temperature, neighbours)),)\n",
        (_OUTCOMES, _PAID, f"{_ROUNDS}::test_a_release_is_read_back_and_priced_again"),
        "Only the first draw is charged.",
    ),
    Mutant(
        "choice-charged-as-draws-with-replacement",
        _CHOOSING,
        "(DrawEvent(1, choice_range(self.temperature, neighbours)),) * len(self)\n",
        "(DrawEvent(len(self), choice_range(self.temperature, neighbours)),)\n",
        (_PAID,),
        "What is proved of independent draws is claimed of draws that depend on one another.",
    ),
    Mutant(
        "choice-temperature-of-draws-with-replacement",
        _PURSE,
        "self._range(share / draws, 1) * _KEPT_BACK",
        "self._range(share, draws) * _KEPT_BACK",
        (_SHARE,),
        "The temperature is that of independent draws, so the share is exceeded.",
    ),
    Mutant(
        "choice-scores-in-floating-point",
        _CHOOSING,
        "(scores.max() - scores), CLIP)",
        "(float(scores.max()) - scores.astype(float)), CLIP)",
        (f"{_TESTS}::test_weights_are_exponentials_of_exact_differences",),
        "Large scores are rounded before they are compared: errors beyond what is charged.",
    ),
    Mutant(
        "choice-overflow-unnoticed",
        _CHOOSING,
        "start).max() * FINENESS < LARGEST:\n",
        "start).max() < np.inf:\n",
        (f"{_TESTS}::test_nothing_overflows_unnoticed",),
        "Scores wrap around, and one record moves them by any amount.",
    ),
    Mutant(
        "choice-total-overflows-unnoticed",
        _CHOOSING,
        "        if not largest < LARGEST:  # so that NaN is refused, too\n",
        "        if largest >= 2.0 * LARGEST:\n",
        (f"{_TESTS}::test_nothing_overflows_unnoticed",),
        "Expectations beyond 64 bits make scores wrap around.",
    ),
    Mutant(
        "choice-of-a-release-without-a-step",
        "src/dualquery/release/verifying.py",
        "    if chosen != [step.kind is Kind.CHOICE for step in plan.steps]:\n",
        "    if False:\n",
        (f"{_ROUNDS}::test_a_choice_that_no_step_makes_is_refused",),
        "A release holds a choice that its plan does not make.",
    ),
    Mutant(
        "choice-twice-the-same-table",
        _CHOOSING,
        '            require_distinct(sets, "a chosen table")\n',
        "            pass\n",
        (
            f"{_TESTS}::test_a_choice_of_no_tables_is_refused",
            f"{_ROUNDS}::test_a_forged_choice_is_refused",
        ),
        "A forged choice names a table twice; whoever measures it would measure it twice.",
    ),
)
