"""Trained weights for listenwell: the systems of the papers. Each folder is a system, with its card."""
