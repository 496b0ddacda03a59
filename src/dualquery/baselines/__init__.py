"""PRIVATE. What a release is measured against: every other method, by the same protocol.

Those that read rows say what they cost in the same accountants; their proofs are in
docs/proofs/baselines.md. Start reading at `baseline`.
"""
