"""The same application on a real local Ray: two replicas behind Ray's proxy."""

from __future__ import annotations

import json
import socket

import httpx2
import pytest

pytest.importorskip("fastapi")

from serving_helpers import KEY, key_file

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.data.batching import EncodingConfig
from listenwell.decoding import Decoding

ray = pytest.importorskip("ray")
PATH = "/v1/chat/completions"
BODY = {"messages": [{"role": "user", "content": "it rained"}]}


def test_what_cannot_be_asked_for_is_told():
    from listenwell.serving.ray_app import build

    with pytest.raises(ValueError, match="did you mean 'replicas'"):
        build({"replica": "2"})


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_application_runs_on_ray_serve(tmp_path, tiny_model, tokenizer):
    from ray import serve

    from listenwell.serving.ray_app import build

    checkpoint.save(
        Checkpoint("multi-trs", tiny_model(), tokenizer, EncodingConfig(), Decoding(max_length=8)), tmp_path / "tiny"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        args = {"models": str(tmp_path / "tiny"), "replicas": "2", "cpus": "0.5", "api_key_file": key_file(tmp_path)}
        serve.run(build(args), name="listenwell")
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
            assert client.get("/health").json()["status"] == "ok"
            assert client.post(PATH, json=BODY).status_code == 401
            client.headers["authorization"] = f"Bearer {KEY}"
            said = client.post(PATH, json=BODY).json()["choices"][0]["message"]["content"]
            assert said
            lines = [line for line in client.post(PATH, json={**BODY, "stream": True}).text.splitlines() if line]
            assert lines[-1] == "data: [DONE]"
            pieces = [json.loads(line[6:])["choices"][0]["delta"].get("content", "") for line in lines[:-1]]
            assert "".join(pieces) == said  # a reply does not depend on the replica
            assert client.post(PATH, json={**BODY, "tools": [{}]}).json()["error"]["param"] == "tools"
            crisis = {"messages": [{"role": "user", "content": "I want to die"}]}
            assert client.post(PATH, json=crisis).json()["listenwell"]["care"]["kind"] == "card"
            assert len({client.get("/health").json()["pid"] for _ in range(40)}) == 2
    finally:
        serve.shutdown()
        ray.shutdown()
