"""Trained weights for listenwell: the systems of the papers. Each folder is a system; its CARD.md tells of it."""
