"""Rating studies with people: designed, served, stored and reported by one command, `listenwell study`."""
