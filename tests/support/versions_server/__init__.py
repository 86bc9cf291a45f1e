"""A server in this process, asked over real HTTP by an ASGI client, and events as a Spark job's emitter sends them."""
