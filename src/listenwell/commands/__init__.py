"""What `listenwell COMMAND` runs: one function per file, whose signature defines the command line."""
