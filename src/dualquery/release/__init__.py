"""The release: what may be published, what can be asked of it, its directory and its page.

Everything here follows from the transcript, so it is post-processing. Nothing here imports rows or
counts; the rooms above (engines, evaluation, baselines, paper, estimator, cli) may import this one.
Start reading at `release` and `published`, then `directory`.
"""
