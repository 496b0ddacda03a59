"""The mixture of product distributions, fitted to what was released. Public side.

The mixture and what it answers, the likelihood, the training, standard errors, rows that are
arranged. It sees draws and measurements and nothing private, so all it does is post-processing.
The game, the release and the private rooms may import this one. Start reading at `mixture`, then
`training`.
"""
