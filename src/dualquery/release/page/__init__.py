"""`report.html`: the page of a release, made from its public side alone.

`evaluation.page` reuses its charts and its style. Start reading at `render`.
"""
