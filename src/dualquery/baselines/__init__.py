"""What a release is measured against."""
