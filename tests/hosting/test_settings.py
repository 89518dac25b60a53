from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest

from kizuki.actors import GatewayConfig
from kizuki.actors.hosting.exits import CommandFailed, ExitCode
from kizuki.actors.hosting.settings import Flag, Settings, load_settings

CHANGED: Mapping[str, object] = {
    "language": "ja",
    "notices_max": 7,
    "busy_timeout_s": 1.5,
    "synchronous": "normal",
    "retention_days": 2.5,
    "retention_rows": 123,
    "prune_interval_s": 60.0,
    "wake_coalesce_s": 0.0,
    "record_unwatched": True,
    "upstream_interval_s": 5.0,
    "upstream_first_s": 1.0,
    "catalog_timeout_s": 9.0,
    "poll_interval_s": 0.5,
    "idle_actor_s": 3.0,
}
"""For each setting of a gateway a value that is not the default."""


def load(flags: Mapping[str, Flag] | None = None, file: str | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    if file is not None:
        Path("kizuki.toml").write_text(file, "utf-8")
    return load_settings(flags or {}, None, environ or {})


def wrong(flags: Mapping[str, Flag] | None = None, file: str | None = None, environ: Mapping[str, str] | None = None) -> str:
    with pytest.raises(CommandFailed) as failed:
        load(flags, file, environ)
    assert failed.value.code is ExitCode.USAGE
    return str(failed.value)


def test_defaults() -> None:
    """With nothing set the database is kizuki.db and the gateway's configuration its default."""
    assert load() == Settings("kizuki.db", None, GatewayConfig())


def test_precedence() -> None:
    """A flag wins over the environment, that over the file, that over the default; each setting by itself."""
    file = 'language = "ja"\nnotices_max = 1\nretention_rows = 1\nbusy_timeout_s = 1'
    environ = {"KIZUKI_NOTICES_MAX": "2", "KIZUKI_RETENTION_ROWS": "2"}
    settings = load({"retention_rows": Flag("--rows", 3)}, file, environ)
    assert settings.config == GatewayConfig(language="ja", notices_max=2, retention_rows=3, busy_timeout_s=1)


def test_every_field_is_covered() -> None:
    """The values that the next two tests set are of all fields of the configuration, and none of them the default."""
    assert set(CHANGED) == {field.name for field in fields(GatewayConfig)}
    assert all(getattr(GatewayConfig(), name) != value for name, value in CHANGED.items())


@pytest.mark.parametrize("name", CHANGED)
def test_environment(name: str) -> None:
    """Every field of the gateway's configuration can be set in the environment, as KIZUKI_ and its name in capitals."""
    assert getattr(load(environ={f"KIZUKI_{name.upper()}": str(CHANGED[name])}).config, name) == CHANGED[name]


@pytest.mark.parametrize("name", CHANGED)
def test_file(name: str) -> None:
    """Every field of the gateway's configuration can be set in the file."""
    value = CHANGED[name]
    toml = f'"{value}"' if isinstance(value, str) else str(value).lower()
    assert getattr(load(file=f"{name} = {toml}").config, name) == value


def test_database() -> None:
    """The database is a setting like the others, and where it was named is known."""
    assert load(file='db = "a.db"').db == "a.db"
    assert load(file='db = "a.db"', environ={"KIZUKI_DB": "b.db"}).db == "b.db"
    assert load({"db": Flag("--db", "c.db")}, environ={"KIZUKI_DB": "b.db"}).db_source == "--db"


def test_named_file(tmp_path: Path) -> None:
    """A file that is named is read instead of ./kizuki.toml."""
    Path("kizuki.toml").write_text("notices_max = 1", "utf-8")
    other = tmp_path / "other.toml"
    other.write_text("retention_rows = 5", "utf-8")
    assert load_settings({}, other, {}).config == GatewayConfig(retention_rows=5)


def test_empty_and_foreign_variables() -> None:
    """A variable that is empty is not set, and one that is no setting is somebody else's."""
    assert load(environ={"KIZUKI_NOTICES_MAX": "", "KIZUKI_CI": "1"}).config == GatewayConfig()


@pytest.mark.parametrize(
    ("flags", "file", "environ", "source"),
    [
        ({"retention_days": Flag("--days", -1.0)}, None, None, "--days: retention_days is -1.0"),
        (None, "retention_days = -1", None, "kizuki.toml: retention_days"),
        (None, 'retention_days = "3"', None, "kizuki.toml: retention_days"),
        (None, "db = 3", None, "kizuki.toml: db"),
        (None, None, {"KIZUKI_NOTICES_MAX": "many"}, "KIZUKI_NOTICES_MAX: notices_max is 'many': it must be a whole number"),
        (None, None, {"KIZUKI_NOTICES_MAX": "0"}, "KIZUKI_NOTICES_MAX: notices_max is 0"),
        (None, None, {"KIZUKI_BUSY_TIMEOUT_S": "nan"}, "KIZUKI_BUSY_TIMEOUT_S"),
        (None, None, {"KIZUKI_RECORD_UNWATCHED": "perhaps"}, "KIZUKI_RECORD_UNWATCHED: record_unwatched is 'perhaps'"),
        (None, None, {"KIZUKI_LANGUAGE": "fr"}, "KIZUKI_LANGUAGE: language is 'fr': it must be one of en, ja"),
    ],
)
def test_wrong_values(flags: Mapping[str, Flag] | None, file: str | None, environ: Mapping[str, str] | None, source: str) -> None:
    """A wrong value is a usage error that names where it came from, and what it was."""
    assert source in wrong(flags, file, environ)


def test_wrong_names() -> None:
    """A name in the file that is no setting is an error that names the likely one."""
    assert wrong(file='languge = "ja"') == "kizuki.toml: there is no setting 'languge': did you mean language?"


def test_wrong_files(tmp_path: Path) -> None:
    """A file that is no TOML is an error with its line, one that was named and is missing too."""
    assert "line 1" in wrong(file="language = fr")
    with pytest.raises(CommandFailed, match="--config: there is no file"):
        load_settings({}, tmp_path / "none.toml", {})


def test_a_mark_before_the_settings() -> None:
    """A file that an editor saved with a byte order mark is read like any other."""
    assert load(file="\ufeffnotices_max = 3").config.notices_max == 3
