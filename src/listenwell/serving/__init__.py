"""The HTTP server: an OpenAI-compatible API and a page, over systems that write for many people at once."""
