"""What is released and what it costs: the core that every promise rests on.

Events, one file per accountant, calibration, exact draws, exact noise, statements and the ledger.
It works on integers that it is given and knows nothing of tables, games or models; every function
that states a theorem has a proof of its name in docs/proofs. Start reading at `events`.
"""
