"""PRIVATE where it reads tables. The paper's data sets and experiments, and the demo's survey.

`datasets` has named and generated tables, `experiments` one file per figure of the paper. Every
run of an experiment is seeded, and therefore NOT PRIVATE. Only the command line may import this
room. Start reading at `experiments`.
"""
