"""The same application on Ray Serve, over as many machines as the cluster has:

    serve run listenwell.serving.ray_app:build models=house,multi-trs replicas=4 api_key_file=/etc/listenwell/keys

Ray's proxies accept the requests and spread them over the replicas. Each replica is what `listenwell serve` is on one
machine: it loads the systems and has its own queue and metrics. `serve run --help` lists Ray's own options.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ray import serve

from listenwell.labels.taxonomy import unknown_name
from listenwell.serving.settings import Settings

LISTS = ("models", "allowed_hosts", "allow_origins")
NUMBERS = ("room", "burst")
KNOWN = (*LISTS, *NUMBERS, "api_key_file", "base_url", "rate", "replicas", "cpus")


def build(args: Mapping[str, str]) -> serve.Application:
    """Build the application that `serve run` starts. Lists are comma-separated; `cpus` is per replica."""
    for name in args:
        if name not in KNOWN:
            raise ValueError(unknown_name("argument", name, KNOWN))
    settings = _settings(args)
    text = settings.to_json()  # sent to the replicas

    def application() -> Any:
        from listenwell.serving.app import create_app
        from listenwell.serving.metrics import Metrics
        from listenwell.serving.served import load_served

        metrics = Metrics()
        chosen = Settings.from_json(text)
        return create_app(chosen, load_served(chosen, metrics), metrics)

    deployment = serve.deployment(
        name="listenwell",
        num_replicas=int(args.get("replicas", 1)),
        ray_actor_options={"num_cpus": float(args.get("cpus", 1))},
        # The replica's own queue decides which requests wait and which get 429; care answers even when it is full.
        max_ongoing_requests=4 * settings.room * len(settings.models),
        graceful_shutdown_timeout_s=30,
    )
    return deployment(serve.ingress(application)()).bind()


def _settings(args: Mapping[str, str]) -> Settings:
    from listenwell.loading import default_system

    lists = {name: _names(args[name]) for name in LISTS if name in args}
    numbers = {name: int(args[name]) for name in NUMBERS if name in args}
    others = {name: args[name] for name in ("api_key_file", "base_url") if name in args}
    rate = {"rate": float(args["rate"])} if "rate" in args else {}
    return Settings(**{"models": (default_system(),), **lists, **numbers, **others, **rate})  # type: ignore[arg-type]


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in str(text).split(",") if name.strip())
