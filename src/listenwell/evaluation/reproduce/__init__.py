"""Reproduces every table and figure of a paper, with published next to measured numbers."""
