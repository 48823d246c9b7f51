"""What every web application of listenwell stands behind: checks of host, origin, key and body, and safe headers."""
