"""listenwell: empathetic dialogue systems that talk, train, are measured and compared."""

__version__ = "0.1.0"
