"""Trained weights for listenwell: what measures positive replies: the judge. Each folder is a system; its CARD.md tells of it."""
