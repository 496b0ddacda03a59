"""What is released and what it costs: the core that every promise rests on.

Events, one file per accountant, calibration, exact draws, exact noise, statements and the ledger.
It works on integers that it is given and knows nothing of rows, games or models. Every function
that states a theorem has a proof of its name in docs/proofs. All rooms except base, domain,
workloads and oracles may import this one. Start reading at `events`.
"""
