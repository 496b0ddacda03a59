"""What a statistician asks of a release: shares, cross tables, means, quantiles, correlations.

Everything is computed from the weighted components that the release answers from, and every figure
comes with a standard error where the release knows one. Start reading at `questions`.
"""
