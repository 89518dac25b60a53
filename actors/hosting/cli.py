"""The command `kizuki`: its commands, their options and their help. What a command does is in a file of its own, imported when it runs."""

from __future__ import annotations

import asyncio
import errno
import inspect
import os
import sys
from collections.abc import Awaitable, Callable
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as distribution_version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

import typer
from typer.core import TyperGroup

from ..errors import InvalidArgument, InvalidSessionKey, KizukiError, UnknownSession
from .exits import CommandFailed, ExitCode
from .http.command import PORT as SERVE_PORT
from .mcp.command import mcp
from .node.command import serve_node

if TYPE_CHECKING:
    from ...storage.protocol import Store
    from ..summaries import Language
    from .settings import Settings

OUTPUT_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""How writing fails. Nothing but standard output is written here: what becomes of a database is told by `KizukiError`."""
EXIT_CODES: Final = "Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 history gap."


F = TypeVar("F", bound=Callable[..., None])


def _examples(*lines: str) -> str:
    return "\n".join(["[bold]Examples[/bold]", *(f"[dim]$[/dim] [cyan]{line}[/cyan]" for line in lines)])


def _command(*examples: str, name: str | None = None) -> Callable[[F], F]:
    """Register a command; its docstring is its help, each paragraph wrapped to the terminal, and examples stand at the end."""

    def register(function: F) -> F:
        paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
        text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        return app.command(name=name, help=text, epilog=_examples(*examples))(function)

    return register


class Kizuki(TyperGroup):
    """The group of all commands: it turns what they raise into a line on standard error and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            _drop_standard_output()
            raise typer.Exit(ExitCode.BROKEN_PIPE) from None
        except (CommandFailed, KizukiError) as error:
            complain(error)
            raise typer.Exit(_code(error)) from None


def _code(error: CommandFailed | KizukiError) -> ExitCode:
    match error:
        case CommandFailed():
            return error.code
        case UnknownSession():
            return ExitCode.NOT_FOUND
        case InvalidArgument() | InvalidSessionKey():
            return ExitCode.USAGE
        case _:
            return ExitCode.ERROR


def complain(error: Exception) -> None:
    """Say on standard error what is wrong."""
    from rich.text import Text

    from .output import console, printable

    console(sys.stderr).print(Text.assemble(("error: ", "bold red"), printable(error)), soft_wrap=True)


def _drop_standard_output() -> None:
    """Nobody reads it any more; without this the interpreter would complain when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    name="kizuki",
    cls=Kizuki,
    invoke_without_command=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_examples("kizuki demo", "kizuki watch ~/.claude/projects/*/*.jsonl", "kizuki list --db state.db")
    + f"\n\n{EXIT_CODES}\nSettings: flags, then the environment (KIZUKI_DB, KIZUKI_LANGUAGE, ...), then kizuki.toml, then defaults.",
)

Db = Annotated[
    str | None,
    typer.Option("--db", metavar="PATH", help="The database: a path, sqlite:///path or postgresql://... (KIZUKI_DB; default: kizuki.db)"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="A TOML file with settings. (default: kizuki.toml, if it is there)")
]
InLanguage = Annotated[
    Literal["en", "ja"] | None, typer.Option("--language", help="Of notices and summaries. (KIZUKI_LANGUAGE; default: en)")
]
Key = Annotated[str, typer.Argument(metavar="KEY", help="A session key, such as agent:main:main.")]
OptionalKey = Annotated[str | None, typer.Argument(metavar="KEY", help="A session key; without one, all sessions.", show_default=False)]
AgentId = Annotated[str | None, typer.Option("--agent", metavar="ID", help="The agent, for a key without the agent: prefix.")]


@app.callback()
def kizuki(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Session state awareness for multi-agent systems: a durable signal log, one notice per change, exact deltas."""
    from .logs import configure_logs

    for stream in (sys.stdout, sys.stderr):
        # A key can hold what the terminal's encoding cannot show.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    configure_logs()
    if version:
        typer.echo(_version())
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit(ExitCode.USAGE)


def _version() -> str:
    try:
        return f"kizuki {distribution_version('kizuki')}"
    except PackageNotFoundError:
        return "kizuki, run from its source folder"


def _settings(db: str | None, config: Path | None, language: str | None = None, **flags: tuple[str, object]) -> Settings:
    from .settings import Flag, load_settings

    given = {"db": Flag("--db", db), "language": Flag("--language", language)}
    return load_settings(given | {name: Flag(*flag) for name, flag in flags.items()}, config, os.environ)


Read = Callable[["Store", "Language"], Awaitable[dict[str, Any]]]
Show = Callable[[Any, dict[str, Any], int], None]


def _answer(settings: Settings, as_json: bool, read: Read, show: Show) -> dict[str, Any]:
    """Read from the database, opened read-only, and print."""
    from ..clock import SystemClock
    from .output import console, write_json

    document = asyncio.run(_read(settings, read))
    if as_json:
        write_json(document)
    else:
        show(console(), document, SystemClock().now_ms())
    return document


async def _read(settings: Settings, read: Read) -> dict[str, Any]:
    from .documents import reading

    async with reading(settings.db) as store:
        return await read(store, settings.config.language)


@_command("kizuki demo", "kizuki demo --fast --db /tmp/demo.db", "kizuki demo --json | jq .figures")
def demo(
    db: Annotated[Path | None, typer.Option("--db", metavar="PATH", help="Where to put the database. (default: kizuki-demo.db)")] = None,
    delay: Annotated[
        float | None, typer.Option("--delay", min=0.0, max=60.0, help="Seconds between steps. (default: 0.7, with --json 0)")
    ] = None,
    fast: Annotated[bool, typer.Option("--fast", help="No pauses between steps.")] = False,
    as_json: AsJson = False,
    language: InLanguage = None,
) -> None:
    """See the whole thing work in ten seconds, with a real database and a real crash.

    A manager spawns two children, a person steps into one of them, and twenty-one changes become one notice. The manager's turn
    fails, then its process is killed, and a second process tells it again, exactly once. Each step is checked. The database is left
    for you to look at.
    """
    from .demo.play import DATABASE, DELAY_S, run_demo

    pause = delay if delay is not None else 0.0 if fast or as_json else DELAY_S
    raise typer.Exit(run_demo(db or Path(DATABASE), language or "en", delay_s=pause, as_json=as_json))


@_command("kizuki status agent:main:main", "kizuki status agent:main:subagent:child --since 19", "kizuki status global --agent main --json")
def status(
    key: Key,
    since: Annotated[int | None, typer.Option("--since", min=0, metavar="N", help="Show the changes after this state version.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=200, help="At most so many changes.")] = 200,
    agent: AgentId = None,
    db: Db = None,
    as_json: AsJson = False,
    config: Config = None,
    language: InLanguage = None,
) -> None:
    """Show one session's state version, and with --since exactly what changed after a version.

    Ends with exit code 4 where some of what changed has been pruned: then the state must be read anew as a whole.
    """
    from . import documents
    from .tables import show_status

    settings = _settings(db, config, language)
    document = _answer(
        settings,
        as_json,
        lambda store, lang: documents.status(store, key, agent, since, limit, lang),
        lambda output, document, now_ms: show_status(output, document, now_ms, after=since or 0),
    )
    if document.get("stateChanges", {}).get("historyGap"):
        raise typer.Exit(ExitCode.HISTORY_GAP)


@_command("kizuki list", "kizuki list --kind subagent --parent agent:main:main", "kizuki list --limit 20 --total --json", name="list")
def list_sessions(
    agent: Annotated[str | None, typer.Option("--agent", metavar="ID", help="Only sessions of this agent.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Only this kind: main, subagent, acp, cron, catalog, ...")] = None,
    parent: Annotated[str | None, typer.Option("--parent", metavar="KEY", help="Only children of this session.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=200, help="At most so many sessions.")] = 100,
    after: Annotated[
        str | None, typer.Option("--after", metavar="KEY", help="Go on behind this session: nextAfter of the page before.")
    ] = None,
    total: Annotated[bool, typer.Option("--total", help="Count all that fit, too.")] = False,
    db: Db = None,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """List sessions, ordered by key."""
    from . import documents
    from .tables import show_sessions

    _answer(
        _settings(db, config),
        as_json,
        lambda store, _: documents.sessions(store, agent_id=agent, kind=kind, parent=parent, limit=limit, after=after, with_total=total),
        show_sessions,
    )


@_command("kizuki events", "kizuki events agent:main:subagent:child --limit 5", "kizuki events --json | jq '.events[].summary'")
def events(
    key: OptionalKey = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="The newest so many.")] = 50,
    agent: AgentId = None,
    db: Db = None,
    as_json: AsJson = False,
    config: Config = None,
    language: InLanguage = None,
) -> None:
    """Show the newest events of the signal log, oldest first: of one session, or of all."""
    from . import documents
    from .tables import show_events

    if key is None and agent is not None:
        raise typer.BadParameter("it goes with a KEY", param_hint="--agent")
    _answer(
        _settings(db, config, language),
        as_json,
        lambda store, lang: documents.events(store, key, agent, limit, lang),
        lambda output, document, now_ms: show_events(output, document, now_ms, with_session=key is None),
    )


@_command("kizuki watches", "kizuki watches agent:main:main --json")
def watches(key: OptionalKey = None, db: Db = None, as_json: AsJson = False, config: Config = None) -> None:
    """Show cursors: who watches whom, and what was seen, notified and is material. KEY is the watcher."""
    from . import documents
    from .tables import show_watches

    _answer(
        _settings(db, config),
        as_json,
        lambda store, _: documents.watches(store, key),
        lambda output, document, _: show_watches(output, document),
    )


@_command("kizuki notices agent:main:main", "kizuki notices agent:main:main --language ja")
def notices(key: Key, db: Db = None, as_json: AsJson = False, config: Config = None, language: InLanguage = None) -> None:
    """Show a watcher's pending notices, word for word, in the order in which its turns will show them.

    Looking takes nothing: they stay pending. One that an open turn holds at this moment is shown, too, for only its gateway knows.
    """
    from . import documents
    from .tables import show_notices

    _answer(
        _settings(db, config, language),
        as_json,
        lambda store, lang: documents.notices(store, key, lang),
        lambda output, document, _: show_notices(output, document),
    )


@_command("kizuki doctor", "kizuki doctor --db state.db --json")
def doctor(db: Db = None, as_json: AsJson = False, config: Config = None) -> None:
    """Check Python, SQLite, the database and the agents' own tools, and say what to do about what is wrong.

    Of each tool it says where it looked, what it found, and which rows of the newest transcripts it did not understand. Exit code 1
    where a problem is found.
    """
    from .doctor import run_doctor

    raise typer.Exit(run_doctor(_settings(db, config), as_json=as_json))


@_command("kizuki prune", "kizuki prune --days 7 --rows 10000 --db state.db")
def prune(
    days: Annotated[float | None, typer.Option("--days", help="Keep events for so many days. (KIZUKI_RETENTION_DAYS; default: 30)")] = None,
    rows: Annotated[int | None, typer.Option("--rows", help="Keep so many events. (KIZUKI_RETENTION_ROWS; default: 50000)")] = None,
    db: Db = None,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Remove events that are too old or too many, and cursors that have expired, as a gateway does hourly.

    It works in slices, and can run beside gateways. Each session remembers how far it was pruned.
    """
    from .prune import run_prune

    settings = _settings(db, config, retention_days=("--days", days), retention_rows=("--rows", rows))
    raise typer.Exit(run_prune(settings, as_json=as_json))


@_command(
    "kizuki watch",
    "kizuki watch --days 1 --interval 5",
    "kizuki watch --once --json | jq '.sessions[]'",
    "kizuki watch ~/.claude/projects/my-project/*.jsonl",
    "kizuki watch --from-start --once --json *.jsonl",
)
def watch(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE...", help="Transcripts of any tool. Without one: all recent sessions.")
    ] = None,
    from_start: Annotated[bool, typer.Option("--from-start", help="Begin at the start of each FILE instead of its end.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Look once. With FILE: report what is in each, and use no database.")] = False,
    days: Annotated[float, typer.Option("--days", min=0.0, help="Without FILE: sessions used in the last so many days.")] = 7.0,
    most: Annotated[int, typer.Option("--max", min=1, max=1_000, help="Without FILE: at most so many sessions.")] = 20,
    interval: Annotated[
        float, typer.Option("--interval", min=0.1, max=3_600.0, metavar="SECONDS", help="Without FILE: how often to look.")
    ] = 2.0,
    as_json: AsJson = False,
    db: Db = None,
    config: Config = None,
    language: InLanguage = None,
) -> None:
    """Notice people in the agents' own tools, live: Claude Code, Codex, Pi, Gemini CLI and OpenCode.

    Without FILE it finds the recent sessions of all these tools, adopts them, and shows them in a table: who changed each last, its
    state version, when a person last wrote there, and whether a notice is pending. Into a pipe it prints lines.

    With FILE each transcript becomes a watched session, and what people say in it becomes notices.

    A notice that was shown is acknowledged, and not shown again: in the table, which goes on showing it, when you leave; everywhere
    else as soon as it was shown.

    The session agent:main:watch watches them all. Sessions, events and positions are in the database (kizuki.db here, unless you
    name another), where the other commands find them. Ctrl-C ends it.
    """
    settings = _settings(db, config, language)
    if files:
        from .follow import run_watch

        raise typer.Exit(run_watch(files, settings, complain, from_start=from_start, once=once, as_json=as_json))
    if from_start:
        raise typer.BadParameter("it goes with a FILE", param_hint="--from-start")
    from .live import Choice
    from .live_displays import run_live

    raise typer.Exit(run_live(settings, Choice(days, most, interval), once=once, as_json=as_json))


@_command(
    "kizuki adopt claude",
    "kizuki adopt codex --limit 5 --json",
    "kizuki adopt claude 0b9b27f0-2e7f-40c7-b31f-219f8444d0d2 --watcher agent:main:main --db state.db",
)
def adopt(
    catalog: Annotated[str, typer.Argument(metavar="CATALOG", help="claude, codex, pi, gemini or opencode.")],
    thread: Annotated[str | None, typer.Argument(metavar="THREAD", help="A session of that tool; without one, all are listed.")] = None,
    watcher: Annotated[str | None, typer.Option("--watcher", metavar="KEY", help="The session that watches it from now on.")] = None,
    agent: Annotated[str, typer.Option("--agent", metavar="ID", help="The agent that it belongs to.")] = "main",
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="Its session key. (default: agent:<agent>:catalog:<catalog>:<hash>)")
    ] = None,
    host: Annotated[str, typer.Option("--host", metavar="ID", help="The machine that it is on.")] = "local",
    limit: Annotated[int, typer.Option("--limit", min=1, help="List at most so many.")] = 20,
    children: Annotated[bool, typer.Option("--children", help="List sub-agents' sessions, too.")] = False,
    db: Db = None,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Adopt a session of an agent's own tool, from its present end on: a gateway with that catalog then notices people in it.

    Without THREAD it lists what can be adopted, newest first, and touches no database.
    """
    from .adopt import Adoption, run_adopt, run_list

    if thread is not None:
        settings = _settings(db, config)
        raise typer.Exit(run_adopt(settings, catalog, thread, Adoption(agent, host, key, watcher), as_json=as_json))
    if watcher is not None or key is not None:
        raise typer.BadParameter("they go with a THREAD", param_hint="--watcher, --key")
    raise typer.Exit(run_list(catalog, agent, limit, with_children=children, as_json=as_json))


@_command("kizuki hook claude --db ~/.kizuki/state.db < event.json")
def hook(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="claude: Claude Code.")],
    agent: Annotated[str, typer.Option("--agent", metavar="ID", help="The agent that its sessions belong to.")] = "main",
    deadline: Annotated[float, typer.Option("--deadline", metavar="SECONDS", help="How long an answer may take.")] = 0.2,
    db: Db = None,
    config: Config = None,
) -> None:
    """Answer a hook event, read as JSON from standard input, with what the session has not been told yet.

    It is for the settings of the tool (see the README). The session is the one that kizuki adopt gives. What the event says is
    recorded: a person's prompt if the session is watched, a sub-agent's start and end, a compaction. Whatever goes wrong, it ends
    with exit code 0, without output, and says why on standard error. It creates no database.
    """
    from .hook import Options, answer_event

    answer_event(tool, Options(db, agent, None if config is None else str(config), deadline))


@_command("kizuki bench --quick", "kizuki bench --suite commits --json", "kizuki bench --full --plot plots")
def bench(
    suite: Annotated[
        list[str] | None, typer.Option("--suite", metavar="NAME", help="Only this suite, at its full size; may be repeated.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, few repetitions: a first impression.")] = False,
    full: Annotated[bool, typer.Option("--full", help="All suites with the sizes of a million.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one row of JSON a line.")] = False,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="DIR", help="Write plots there; needs matplotlib, the extra plot.")] = None,
) -> None:
    """Measure this machine: run the benchmark suites. Exit code 1 where a target is missed."""
    from .bench import run_bench

    raise typer.Exit(run_bench(suite or [], quick=quick, full=full, as_json=as_json, plots=plot))


@_command("kizuki serve --db state.db", "kizuki serve --host 192.0.2.7 --token-file serve.token --allow-host box.example")
def serve(
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen. Anything but loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="0: any that is free.")] = SERVE_PORT,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="FILE", help="Holds the token that must be shown. (KIZUKI_SERVE_TOKEN)")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", metavar="NAME", help="A name by which the server is reached; may be repeated.")
    ] = None,
    db: Db = None,
    as_json: AsJson = False,
    config: Config = None,
    language: InLanguage = None,
) -> None:
    """Serve the live page and the HTTP API of a database, for people and for hosts in other languages.

    It is a gateway on the database, beside others or alone. What it answers is described at /openapi.json. Ctrl-C ends it.
    """
    from .http.command import Place, run_serve

    run_serve(_settings(db, config, language), Place(host, port, token_file, allow_host or ()), as_json=as_json)


_command("kizuki mcp --session agent:main:main --db ~/kizuki.db", "kizuki mcp --session agent:main:main --http 127.0.0.1:7434", name="mcp")(
    mcp
)


@_command(
    "kizuki simulate --list",
    "kizuki simulate takeover",
    "kizuki simulate fleet --runs 20 --report fleet.html",
    "kizuki simulate ./my-team.toml --seed 7 --json",
    "kizuki simulate --faults all --seeds 1..1000",
)
def simulate(
    scenario: Annotated[
        str | None, typer.Argument(metavar="SCENARIO", help="A shipped one's name, or the path of a TOML file.", show_default=False)
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="Name the shipped scenarios.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Of the first run; each further run has the next one.")] = 1,
    runs: Annotated[int, typer.Option("--runs", min=1, max=10_000, metavar="N", help="Play so many lives.")] = 5,
    report: Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write a report to look at: one HTML file.")] = None,
    faults: Annotated[
        str | None,
        typer.Option(
            "--faults", metavar="KINDS", help="Search random histories for broken rules instead: all, none, or names with commas."
        ),
    ] = None,
    seeds: Annotated[str, typer.Option("--seeds", metavar="N..M", help="Of the histories that --faults plays.")] = "1..1000",
    long: Annotated[bool, typer.Option("--long", help="Histories of hundreds of operations instead of some thirty.")] = False,
    as_json: AsJson = False,
) -> None:
    """See what awareness buys a team of agents, before you build one.

    Agents and people are simulated, on virtual time; the gateways, their notices and their database are real. Each life is played
    four times: with kizuki, with notices off, with naive polling, and with a prompt line for every event. It counts what agents did on
    stale assumptions, and what knowing better cost. The same seed gives the same bytes.

    With --faults it attacks the library itself: what hosts ask at random, with crashes, failing disks, lost hints and more, and an oracle
    that checks every rule all the time. What fails is made small, and told how to be played again.
    """
    from .simulate import run_list, run_simulate

    if faults is not None:
        if scenario is not None or list_them or report is not None:
            raise typer.BadParameter("it plays histories of its own, without SCENARIO, --list and --report", param_hint="--faults")
        from .simulate_faults import run_search

        raise typer.Exit(run_search(faults, seeds, long=long, as_json=as_json))

    if list_them:
        raise typer.Exit(run_list(as_json=as_json))
    if scenario is None:
        raise typer.BadParameter("name one, or see them with --list", param_hint="SCENARIO")
    raise typer.Exit(run_simulate(scenario, seed, runs, report, as_json=as_json))


_command("kizuki serve-node", "kizuki serve-node --host 192.0.2.7 --host-id box --token-file node.token", name="serve-node")(serve_node)


def main() -> None:
    """Run the command line."""
    try:
        try:
            app(prog_name="kizuki")
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in OUTPUT_FULL:
            raise
        _drop_standard_output()
        complain(CommandFailed(f"standard output cannot be written: {error.strerror or error}"))
        sys.exit(ExitCode.ERROR)


if __name__ == "__main__":
    main()
