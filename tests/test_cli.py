"""The command line with real files, and with real processes where the process is what is tested."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from listenwell import cli

TINY = [
    "--set", "model.width=16", "--set", "model.heads=2", "--set", "model.feed_forward=16",
    "--set", "stages.0.examples=280", "--set", "decoding.max_length=6",
]  # fmt: skip


def started(*words: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """A command in a new process, which needs seconds to import everything."""
    return subprocess.run(
        [sys.executable, "-m", "listenwell.cli", *words],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "120", **environment},
        timeout=300,
        check=False,
    )


def run(*words: str, stdin: str = "", encoding: str = "utf-8", **environment: str) -> subprocess.CompletedProcess[str]:
    """A command in this process, with its own streams; exceptions that no command should raise propagate."""
    streams = [TextIOWrapper(BytesIO(text.encode()), encoding=encoding) for text in (stdin, "", "")]
    with pytest.MonkeyPatch.context() as patched:
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patched.setattr(sys, name, stream)
        for name, value in {"COLUMNS": "120", **environment}.items():
            patched.setenv(name, value)
        code = _exit_code(words)
        said = [_written(stream) for stream in streams[1:]]
    return subprocess.CompletedProcess(words, code, *said)


def _exit_code(words: tuple[str, ...]) -> int:
    """The exit code that the interpreter would use; it prints a message carried by `SystemExit`."""
    try:
        cli.main([*words])
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
            return 1
        return ended.code or 0
    return 0


def _written(stream: TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode(stream.encoding)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    done = run("train", "tiny", "--out", str(folder), *TINY)
    assert done.returncode == 0, done.stderr
    assert "trained on" in done.stderr
    return folder


def test_help_names_every_command():
    done = started("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in cli.COMMANDS)


def test_help_imports_nothing_heavy():
    code = "import sys; from listenwell.cli import main; main(['--help']); print([m for m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not any(f"'{heavy}'" in said for heavy in ("torch", "numpy", "jsonargparse", "rich", "tokenizers"))


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        cli.main([name, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert f"listenwell {name}" in said
    assert "type:" in said


def test_a_mistyped_command_suggests_the_near_one():
    done = started("evalute")
    assert done.returncode == 2
    assert "did you mean 'evaluate'?" in done.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "rerank house --weights.plann 1",
            "unknown option '--weights.plann'; did you mean '--weights.plan'? (known: --w",
        ),
        (
            "evaluate multi-trs --decoding.method bean",
            "--decoding.method is 'bean', expected one of greedy, sample, beam",
        ),
        ("evaluate multi-trs --decoding.method bean", "did you mean 'beam'?"),
        ("evaluate multi-trs --decoding '{methd: beam}'", "--decoding: unknown key 'methd'; did you mean 'method'?"),
        ("generate x --decoding.rerank.plann 3", "did you mean '--decoding.rerank.plan'?"),
        ("generate x --decoding.method.kind 3", "--decoding.method holds one value"),
        (
            "train tiny --set stages.0.epoch=3",
            "stages.0: unknown key 'epoch'; did you mean 'epochs'? (known: name, epochs",
        ),
        ("train tiny --set stages.0.optimizers.main.betas=[1]", "main.betas is [1], expected 2 of them"),
        ("train tny", "did you mean 'tiny'?"),
        ("train tiny --save-evry 3", "unknown option '--save-evry'; did you mean '--save-every'?"),
        ("train --recipe tiny", "RECIPE is given without a flag: leave --recipe out"),
        ("train tiny --threads two", "--threads is 'two', expected an integer"),
        ("train tiny --threads", "--threads needs a value: an integer"),
        ("chat --mode fast", "--mode is 'fast', expected one of rerank, stream"),
        ("chat --positivity much", "--positivity is 'much', expected a number"),
        ("evaluate", "needs SYSTEM: a trained system by name"),
        ("models all", "unexpected argument 'all'"),
        ("--model house", "a command comes first, before '--model': chat, serve"),
        ("bogus", "unknown command 'bogus'; known: chat, serve"),
    ],
)
def test_a_slip_is_told_in_one_line_with_the_choices_and_exit_code_2(
    words: str, expected: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as ended:
        cli.main(shlex.split(words))
    said = capsys.readouterr()
    assert ended.value.code == 2
    assert expected in said.err
    assert said.err.count("\n") == 1
    assert not said.out
    assert not any(word in said.err for word in ("Parser key", "usage:", "class_path", "typing."))


def test_the_words_of_a_nested_option_may_be_joined_by_hyphens(trained: Path, capsys: pytest.CaptureFixture[str]):
    cli.main(["generate", str(trained), "shipped", "--limit", "1", "--decoding.max-length", "1"])
    assert len(json.loads(capsys.readouterr().out)["text"].split()) <= 1


def test_help_for_a_command_may_be_asked_for_first(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        cli.main(["help", "models"])
    assert ended.value.code == 0
    assert "listenwell models" in capsys.readouterr().out


ASCII = {"PYTHONIOENCODING": "ascii", "LANG": "C", "LC_ALL": "C", "TERM": "dumb"}


@pytest.mark.parametrize(
    "words", [["models"], ["data"], ["data", "shipped"], ["compare", "mime", "multi-trs"], ["evaluate", "--help"]]
)
def test_a_terminal_that_knows_ascii_alone_gets_plain_symbols(words: list[str]):
    done = run(*words, encoding="ascii", **ASCII)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert done.stdout.isascii()


def test_json_for_an_ascii_terminal_loses_no_letter(trained: Path):
    said = "caf\u00e9 \u4f60\u597d \u2026 \U0001f600"
    done = started("generate", str(trained), stdin=said + "\n", **ASCII)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["context"] == [said]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["chat", "--model", "multi-tsr"], "did you mean 'multi-trs'?"),
        (["train", "tiny", "--set", "model.widht=3"], "did you mean 'width'?"),
        (["data", "empathetic-dialogue"], "did you mean 'empathetic-dialogues'?"),
        (["evaluate", "multi-trs", "--data", "shipped", "--decoding.method", "beem"], "beem"),
        (["train", "nowhere.yaml"], "no such recipe file"),
        (["chat", "--intent", "consolin"], "did you mean 'consoling'?"),
        (["generate", "multi-trs", "--intent", "consoling"], "multi-trs does not take an intent"),
        (["control", "multi-trs", "--data", "shipped"], "does not take an intent"),
    ],
)
def test_bad_input_gets_one_clear_line_and_no_traceback(words: list[str], expected: str):
    done = run(*words)
    assert done.returncode != 0
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_a_process_that_gives_up_says_one_line_and_no_traceback():
    done = started("train", "multi-tsr")
    assert done.returncode == 2
    assert "did you mean 'multi-trs'?" in done.stderr
    assert done.stderr.count("\n") == 1


def test_options_of_decoding_leave_the_system_its_own_way_in_all_else(trained: Path, tmp_path: Path):
    words = ("--data", "shipped", "--limit", "2", "--resamples", "0", "--out", str(tmp_path / "scores"))
    done = run("evaluate", str(trained), *words, "--decoding.method", "beam", "--decoding.beams", "2")
    assert done.returncode == 0, done.stderr
    about = json.loads((tmp_path / "scores" / "scores.json").read_text())["about"]
    assert about["decoding"] == "beam2+lp1+block3+max6"  # as in the recipe, except for what was typed


def test_a_missing_corpus_says_where_it_was_looked_for_and_what_to_do(tmp_path: Path):
    done = run("train", "multi-trs", "--out", str(tmp_path / "x"), LISTENWELL_DATA=str(tmp_path))
    assert done.returncode == 1
    assert "LISTENWELL_DATA" in done.stderr
    assert "Traceback" not in done.stderr


def test_models_lists_papers_and_recipes():
    said = json.loads(run("models", "--json").stdout)
    systems = {system["name"]: system for system in said["systems"]}
    assert {"trs", "multi-trs", "house", "judge"} <= set(systems)
    assert systems["house"]["about"] == said["recipes"]["house"]
    assert systems["house"]["trained"]
    assert {"tiny", "trs", "multi-trs"} <= set(said["recipes"])
    assert "Rashkin" in systems["multi-trs"]["paper"]
    listed = run("models", COLUMNS="200").stdout
    assert "trained by you" not in listed
    assert "trained as house" in listed
    assert [line for line in listed.splitlines() if not line.startswith(" ")][:2] == ["House", "Systems from papers"]
    assert len([line for line in listed.splitlines() if line.startswith("  mime ")]) == 1
    assert "listenwell train RECIPE" not in listed
    assert "listenwell train RECIPE" in run("models", "--recipes").stdout


def test_data_describes_a_corpus(tmp_path: Path):
    said = json.loads(run("data", "shipped", "--split", "train", "--json").stdout)
    assert said["dialogues"] == 874
    mine = tmp_path / "my.jsonl"
    mine.write_text('{"turns": [{"speaker": "speaker", "text": "hi"}]}\n{"turns": 5}\n', encoding="utf-8")
    done = run("data", str(mine))
    assert done.returncode == 1
    assert "my.jsonl line 2" in done.stderr


def test_a_run_is_not_overwritten_but_goes_on(trained: Path):
    done = run("train", "tiny", "--out", str(trained), *TINY)
    assert done.returncode == 1
    assert "--resume" in done.stderr
    done = run("train", "tiny", "--out", str(trained), "--resume", *TINY)
    assert done.returncode == 0
    assert "trained to the end" in done.stderr


def test_a_run_that_is_stopped_says_how_to_go_on_just_so(monkeypatch, capsys):
    from listenwell.training import run as training
    from listenwell.training.signals import Interrupted

    def stop(*_: object, **__: object) -> None:
        raise Interrupted

    monkeypatch.setattr(training, "train", stop)
    words = ["train", "tiny", "--out", "runs/x", "--set", "stages.0.epochs=1", "--precision", "bf16", "--device", "cpu"]
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 130
    hint = "listenwell train tiny --out runs/x --resume --set stages.0.epochs=1 --precision bf16 --device cpu"
    assert capsys.readouterr().out.rstrip().endswith(hint)


def test_evaluate_prints_scores_and_keeps_every_reply(trained: Path):
    done = run("evaluate", str(trained), "--data", "shipped", "--limit", "72", "--resamples", "50")
    assert done.returncode == 0, done.stderr
    for name in ("perplexity", "accuracy@1", "bleu-4", "distinct-1", "bland"):
        assert name in done.stdout
    place = trained / "evaluation" / "shipped-test-first72"
    scores = json.loads((place / "scores.json").read_text())
    replies = (place / "replies.jsonl").read_text().splitlines()
    assert scores["about"]["items"] == len(replies) == 72
    assert all(score["signature"] for score in scores["scores"])


def test_generate_reads_lines_and_writes_records(trained: Path, tmp_path: Path):
    done = run("generate", str(trained), stdin='I lost my keys\n["I won!", "What?", "A car!"]\n')
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [len(record["context"]) for record in records] == [1, 3]
    target = tmp_path / "replies.jsonl"
    done = run("generate", str(trained), "shipped", "--limit", "5", "--out", str(target))
    assert done.returncode == 0, done.stderr
    assert len(target.read_text().splitlines()) == 5
    done = run("generate", str(trained), stdin="[1, 2]\n")
    assert "line 1" in done.stderr


def test_chat_answers_each_line_of_a_pipe_and_ends(trained: Path):
    done = started("chat", "--model", str(trained), stdin="I lost my job today\n\nIt hurts\n")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2


def test_the_readme_s_python_works():
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    code = readme.split("```python\n")[1].split("```")[0]
    exec(compile(code, "README.md", "exec"), {})


def test_data_converts_draws_and_checks(tmp_path: Path):
    target, picture = tmp_path / "shipped.jsonl", tmp_path / "labels.png"
    done = run("data", "convert", "shipped", "--out", str(target))
    assert done.returncode == 0, done.stderr
    assert len(target.read_text(encoding="utf-8").splitlines()) == 1152
    assert run("data", "stats", str(target), "--plot", str(picture)).returncode == 0
    assert picture.stat().st_size > 10_000
    said = json.loads(run("data", "check", "shipped", "--json").stdout)
    assert said["within"] == {"train": 0, "valid": 0, "test": 0}
    assert all(pair["dialogues"] == 0 for pair in said["across"])
    assert "needs a source" in run("data", "check").stderr
    assert "did you mean 'stats'" in run("data", "stat", "shipped").stderr


def test_generate_replies_as_it_is_asked_to(tmp_path: Path):
    from listenwell import checkpoint
    from test_system import made_bot

    checkpoint.save(made_bot(name="meed2").checkpoint, tmp_path / "bot")
    done = run("generate", str(tmp_path / "bot"), "--intent", "wishing", stdin="I lost my keys\n")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["label"] == record["reasons"]["does"] == "wishing"
