"""`python -m listenwell`: the command line as a module."""

from listenwell.cli import main

if __name__ == "__main__":
    main()
