"""PRIVATE. What a release is measured against: every other method, by the same protocol.

Those that read rows say what they cost in the same accountants; their proofs are in
docs/proofs/baselines.md. Evaluation, the paper's experiments and the command line may import this
room. Start reading at `baseline`, the protocol; then any file, one per method.
"""
