"""Trained weights for listenwell: what chat needs. Each folder is a system, with its card."""
