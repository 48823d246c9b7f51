"""`python -m listenwell`: the command line, for those who launch a module."""

from listenwell.cli import main

if __name__ == "__main__":
    main()
