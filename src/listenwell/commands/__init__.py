"""What `listenwell COMMAND` runs: one function a file, its signature is the command line."""
