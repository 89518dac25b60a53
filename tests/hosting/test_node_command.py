"""`kizuki serve-node`: where it listens, and what it refuses before it does."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kizuki.actors.hosting.exits import CommandFailed
from kizuki.actors.hosting.node.command import TOKEN_VARIABLE
from kizuki.actors.hosting.serving import listening as serving_listening
from kizuki.actors.hosting.serving.listening import listening
from kizuki.actors.hosting.serving.token import read_token
from tests.hosting.conftest import Kizuki
from tests.hosting.nodes import TOKEN


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1", "::ffff:192.0.2.1"])
def test_token_is_needed(kizuki: Kizuki, address: str) -> None:
    """What other machines could reach is not bound without a token."""
    ended = kizuki("serve-node", "--host", address, "--port", 0)
    assert (ended.code, ended.out) == (2, "")
    assert TOKEN_VARIABLE in ended.err


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "127.9.9.9"])
def test_loopback_needs_none(address: str) -> None:
    """Loopback is bound without a token, and is what is bound."""
    with listening(address, 0, has_token=False, variable=TOKEN_VARIABLE) as bound:
        assert bound.getsockname()[0].startswith("127.") or bound.getsockname()[0] == "::1"


def test_others_with_a_token() -> None:
    """With a token any address may be bound."""
    with listening("0.0.0.0", 0, has_token=True, variable=TOKEN_VARIABLE) as bound:
        assert bound.getsockname()[0] == "0.0.0.0"


def test_addresses_that_cannot_be_bound(kizuki: Kizuki) -> None:
    """A port that is taken is an error, and what is no address is wrong usage."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = kizuki("serve-node", "--port", taken.getsockname()[1])
    assert (ended.code, "in use" in ended.err) == (1, True)
    for wrong in ("no address", "a" * 300, "."):
        assert kizuki("serve-node", "--host", wrong, "--port", 0).code == 2


@pytest.mark.parametrize("wrong", ["short", "a b c d e f g h i j k l m n", "tökéntökéntökéntökén", "fifteen-letters"])
def test_tokens_that_are_none(kizuki: Kizuki, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    """A token that could be guessed, or cannot be sent, is refused and not repeated."""
    monkeypatch.setenv(TOKEN_VARIABLE, wrong)
    ended = kizuki("serve-node", "--port", 0)
    assert (ended.code, wrong in ended.err) == (2, False)


def test_token_files(kizuki: Kizuki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with the token goes before the environment, and may not be read by others."""
    monkeypatch.setenv(TOKEN_VARIABLE, "x" * 20)
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    assert read_token(file, {TOKEN_VARIABLE: "x" * 20}, TOKEN_VARIABLE) == TOKEN
    assert read_token(None, {TOKEN_VARIABLE: TOKEN}, TOKEN_VARIABLE) == TOKEN
    assert read_token(None, {TOKEN_VARIABLE: ""}, TOKEN_VARIABLE) is None
    file.chmod(0o640)
    ended = kizuki("serve-node", "--token-file", file, "--port", 0)
    assert (ended.code, "chmod 600" in ended.err, TOKEN in ended.err) == (2, True, False)
    assert kizuki("serve-node", "--token-file", tmp_path / "none", "--port", 0).code == 2


def test_empty_token_file(tmp_path: Path) -> None:
    """An empty file is no token rather than none at all."""
    file = tmp_path / "token"
    file.touch(0o600)
    with pytest.raises(CommandFailed, match="16"):
        read_token(file, {}, TOKEN_VARIABLE)


@pytest.mark.parametrize("wrong", ["two words", "a/b", "..", "-a", "a" * 65, "日本"])
def test_names_that_are_none(kizuki: Kizuki, wrong: str) -> None:
    """What the machine is called must fit into an address."""
    ended = kizuki("serve-node", f"--host-id={wrong}", "--port", 0)
    assert (ended.code, "--host-id must" in ended.err) == (2, True)


def test_without_the_extra(kizuki: Kizuki, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the optional packages the command says how to get them."""
    monkeypatch.setattr(serving_listening, "find_spec", lambda name: None)
    ended = kizuki("serve-node")
    assert (ended.code, "kizuki[http]" in ended.err) == (1, True)
