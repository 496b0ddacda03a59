"""The release: what may be published, what can be asked of it, its directory and its page.

Everything here follows from the transcript, so it is post-processing; nothing imports rows or
counts. Start reading at `release`.
"""
