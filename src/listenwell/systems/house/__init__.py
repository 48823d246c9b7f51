"""The house system: it listens, plans what to do, and replies."""
