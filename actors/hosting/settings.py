"""Settings of the command line: flags, then the environment, then a TOML file, then defaults.

Every field of `GatewayConfig` is a setting, and `db` is one more. In the environment a setting is called KIZUKI_ and its name in
capitals; in the file it stands at the top level. A wrong value is an error that says where the value came from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, NamedTuple

from ..config import GatewayConfig
from ..errors import InvalidArgument, shown
from .exits import CommandFailed, ExitCode

DATABASE: Final = "kizuki.db"
CONFIG_FILE: Final = "kizuki.toml"
PREFIX: Final = "KIZUKI_"

_TYPES: Final = {"db": "str"} | {field.name: str(field.type) for field in fields(GatewayConfig)}
_BOOLEANS: Final = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_PARSERS: Final[dict[str, Callable[[str], object]]] = {"int": int, "float": float, "bool": lambda text: _BOOLEANS[text.lower()]}
_ALLOWED: Final = {"int": "a whole number", "float": "a number", "bool": "true or false"}


class Flag(NamedTuple):
    """A setting as it was given on the command line."""

    flag: str
    value: object
    """None: not given."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What all commands share."""

    db: str
    db_source: str | None
    """Where the database was named; None where it is the default."""
    config: GatewayConfig


class _Given(NamedTuple):
    value: object
    source: str


def load_settings(flags: Mapping[str, Flag], config_file: Path | None, environ: Mapping[str, str]) -> Settings:
    """Put the settings together; raises `CommandFailed` (usage) that names the source of a wrong value."""
    given = _from_file(config_file) | _from_environment(environ) | _from_flags(flags)
    db = given.pop("db", None)
    values = {name: _checked(name, item) for name, item in given.items()}
    return Settings(DATABASE if db is None else _database(db), db and db.source, GatewayConfig(**values))  # type: ignore[arg-type]


def _from_flags(flags: Mapping[str, Flag]) -> dict[str, _Given]:
    return {name: _Given(flag.value, flag.flag) for name, flag in flags.items() if flag.value is not None}


def _from_environment(environ: Mapping[str, str]) -> dict[str, _Given]:
    """Variables that are empty count as not set, and other KIZUKI_ variables are somebody else's."""
    variables = {name: PREFIX + name.upper() for name in _TYPES}
    return {name: _parsed(name, environ[variable], variable) for name, variable in variables.items() if environ.get(variable)}


def _from_file(config_file: Path | None) -> dict[str, _Given]:
    path = config_file or Path(CONFIG_FILE)
    try:
        table = _table(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        if config_file is None:
            return {}
        raise _wrong(f"--config: there is no file {shown(str(path))}") from None
    except (OSError, ValueError) as error:
        raise _wrong(f"{path}: {error}") from error
    for name in table:
        _check_known(name, path)
    return {name: _Given(value, f"{path}: {name}") for name, value in table.items()}


def _table(text: str) -> dict[str, Any]:
    import tomllib  # most commands find no such file, and one of them is in a hurry

    return tomllib.loads(text)


def _check_known(name: str, path: Path) -> None:
    if name in _TYPES:
        return
    import difflib

    near = difflib.get_close_matches(name, _TYPES, n=1)
    meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(_TYPES)}"
    raise _wrong(f"{path}: there is no setting {shown(name)}: {meant}")


def _parsed(name: str, text: str, variable: str) -> _Given:
    """A text from the environment as the type that the setting has."""
    source, kind = f"environment variable {variable}", _TYPES[name]
    try:
        return _Given(_PARSERS.get(kind, str)(text.strip()), source)
    except (KeyError, ValueError):
        raise _wrong(f"{source}: {name} is {shown(text)}: it must be {_ALLOWED[kind]}") from None


def _checked(name: str, given: _Given) -> object:
    """Each value is tried by itself, so that the error can say where that very value came from."""
    try:
        GatewayConfig(**{name: given.value})  # type: ignore[arg-type]
    except InvalidArgument as error:
        raise _wrong(f"{given.source}: {error}") from error
    return given.value


def _database(given: _Given) -> str:
    if not isinstance(given.value, str) or not given.value:
        raise _wrong(f"{given.source}: db is {shown(given.value)}: it must be a path, sqlite:///path or postgresql://user@host/database")
    return given.value


def _wrong(message: str) -> CommandFailed:
    return CommandFailed(message, ExitCode.USAGE)
