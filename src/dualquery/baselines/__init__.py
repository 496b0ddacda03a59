"""What a release is measured against, all under one protocol (`baseline.py`)."""
