"""One module per subtitle format. Each has `parse(text) -> Parsed`; reading.py recognises which one a file needs."""
