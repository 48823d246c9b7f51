"""Trained weights for listenwell: what measures positive replies. Each folder is a system, with its card."""
