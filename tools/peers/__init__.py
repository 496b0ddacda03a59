"""Other people's methods on the same table, with the same promise, beside this package.

`make peers` builds an environment for each of them under `build/peers`; nothing else in the
repository depends on these. `python -m tools.peers adult` then runs them and prints one table.
A peer sees codes and sizes only, and returns synthetic codes. Errors are counted here.
"""
