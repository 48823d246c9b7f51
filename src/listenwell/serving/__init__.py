"""The HTTP server: an OpenAI-compatible API and a chat page, serving many clients at once."""
