"""One module per subtitle format, each with `looks_like` and `parse`; reading.py detects the format of a file."""
