"""Trained weights for listenwell: what chat needs: the house system with its parts, and multi-trs. Each folder is a system; its CARD.md tells of it."""
