from __future__ import annotations

from listenwell.serving.settings import Limits


def serve(
    model: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    api_key_file: str | None = None,
    workers: int = 1,
    room: int = 256,
    rate: float = 600.0,
    burst: int = 120,
    limits: Limits | None = None,
    allowed_host: list[str] | None = None,
    allow_origin: list[str] | None = None,
    base_url: str | None = None,
    grace: int = 30,
    access_log: bool = False,
) -> None:
    """Serve systems over HTTP: a chat page, and an API for clients of the OpenAI protocol.

    The page is at http://127.0.0.1:8000/, the API under /v1. Signs of a crisis are answered with a fixed text before
    any model sees a message. Nothing from a conversation is stored or logged.

    Only this machine can reach the server unless --host gives another address, which needs a key file. Behind a proxy,
    give the host name that people use with --allowed-host. docs/serving.md explains how to deploy it.

    Args:
        model: One system or several, separated by commas, the first one being the default: a name (`listenwell
            models`), the folder of a run, or openai:NAME. If not given, house if it is available, else multi-trs.
        host: The address to listen on. Any but a loopback address needs --api-key-file.
        port: The port to listen on; 0 for any free one.
        api_key_file: A file with one key per line, each after a name if there are several. Every request except those
            for the page and /health then needs one of them.
        workers: Number of server processes, each with its own copy of the systems.
        room: Maximum number of unfinished replies, per system and worker; a request beyond that gets status 429, which
            says when to try again.
        rate: Requests per minute for each key.
        burst: Requests that a key may make at once before its rate counts.
        limits: The limits for one request.
        allowed_host: A host name of the server, besides localhost and IP addresses; may be given several times.
        allow_origin: The origin of another site, such as https://example.org, whose pages may use the server (CORS);
            may be given several times.
        base_url: Where the server of openai:NAME is.
        grace: Seconds that replies in progress get to finish when the server is told to stop.
        access_log: Write a line per request, with its path and status; never what was said.
    """
    from rich.console import Console

    from listenwell.commands.numbers import at_least
    from listenwell.loading import default_system
    from listenwell.serving.run import Address, check, listen, run, url
    from listenwell.serving.settings import Settings

    at_least(0, port=port, grace=grace)
    at_least(1, workers=workers, room=room, rate=rate, burst=burst)
    _require("fastapi", "uvicorn", "prometheus_client")
    names = tuple(dict.fromkeys(name.strip() for name in (model or default_system()).split(",") if name.strip()))
    settings = Settings(
        models=names,
        base_url=base_url,
        api_key_file=api_key_file,
        room=room,
        rate=rate,
        burst=burst,
        limits=limits or Limits(),
        allowed_hosts=tuple(allowed_host or ()),
        allow_origins=tuple(allow_origin or ()),
    )
    address = Address(host, port, workers, grace, access_log)
    check(settings, address)
    bound = listen(address)
    console = Console(stderr=True, highlight=False)
    _warn(console, settings.api_key_file)
    console.print(f"loading {', '.join(names)} for {url(bound)} …", markup=False, soft_wrap=True)
    with bound:
        run(settings, address, bound)


def _require(*packages: str) -> None:
    from importlib.util import find_spec

    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise ValueError(f"serving needs {', '.join(missing)}: pip install 'listenwell[serve]'")


def _warn(console: object, key_file: str | None) -> None:
    from rich.console import Console

    from listenwell.notices import SafetyWarning, mark_as_shown
    from listenwell.systems.safety.status import classifier_status
    from listenwell.web.keys import readable_by_others

    assert isinstance(console, Console)
    status = classifier_status()
    if not status.active:
        mark_as_shown(status.warning, SafetyWarning)
        console.print(f"warning: {status.warning}", markup=False, style="yellow", soft_wrap=True)
    if key_file is not None and readable_by_others(key_file):
        message = f"warning: other users of this machine can read {key_file}; chmod 600 {key_file}"
        console.print(message, markup=False, style="yellow", soft_wrap=True)
