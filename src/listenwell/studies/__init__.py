"""Human rating studies: design, serve, store and report them with one command, `listenwell study`."""
