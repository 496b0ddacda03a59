"""Mistakes made on purpose, each with the tests that must notice it: `make mutants`.

A test suite that passes says little about what it would miss. Every mutant here is one wrong line
in the code that the privacy of a release rests on. The command puts them in one by one, runs the
tests named beside each, and complains where one passes.
"""
