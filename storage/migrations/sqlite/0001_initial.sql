-- Integer ids inside, the documented names as views outside: an index by session on the events would cost one more dirty page
-- per session and commit, so a session's events are a chain through `previous`, entered at its head or at a milepost.

CREATE TABLE heads (
    head_id INTEGER PRIMARY KEY,
    session_key TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    last_sequence INTEGER NOT NULL DEFAULT 0,
    pruned_max_sequence INTEGER NOT NULL DEFAULT 0,
    recorded_at INTEGER NOT NULL DEFAULT 0,          -- of the last event; never goes back
    event_count INTEGER NOT NULL DEFAULT 0,          -- all ever recorded: every 64th event is a milepost
    latest_actor TEXT,                               -- an agent's key, '' for everyone else, NULL before the first notifying event
    latest_sequence INTEGER NOT NULL DEFAULT 0,
    other_actor TEXT,
    other_sequence INTEGER NOT NULL DEFAULT 0,
    owed_actor TEXT,                                 -- of owed_sequence
    owed_sequence INTEGER,                           -- first event whose openings are still owed; NULL: nothing is owed
    owed_other_sequence INTEGER,                     -- first one by another actor than owed_actor
    deleted_at INTEGER,
    UNIQUE (session_key, agent_id)
);
CREATE INDEX heads_owed ON heads (owed_sequence) WHERE owed_sequence IS NOT NULL;
CREATE INDEX heads_deleted ON heads (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,      -- a sequence never reappears, whatever is removed
    head_id INTEGER NOT NULL,
    previous INTEGER NOT NULL,                       -- the session's event before this one; 0: none
    kind TEXT NOT NULL,
    notifies INTEGER NOT NULL,
    actor_type TEXT NOT NULL,
    actor_id TEXT,
    run_id TEXT,
    session_id TEXT NOT NULL,
    occurred_at INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    dedupe_key TEXT,
    summary TEXT NOT NULL,
    payload_json TEXT
);
CREATE UNIQUE INDEX events_dedupe ON events (head_id, kind, dedupe_key) WHERE dedupe_key IS NOT NULL;

CREATE TABLE mileposts (
    head_id INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (head_id, sequence)
) WITHOUT ROWID;

CREATE TABLE cursors (
    watcher_id INTEGER NOT NULL,
    target_id INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    notified INTEGER NOT NULL,                       -- above last_seen: a notice is open
    renewed_at INTEGER NOT NULL,
    PRIMARY KEY (watcher_id, target_id)
) WITHOUT ROWID;
-- An event looks for the clean pairs of its target alone, so that pending ones, however many, cost it nothing.
CREATE INDEX cursors_clean ON cursors (target_id, notified <= last_seen);
CREATE INDEX cursors_open ON cursors (watcher_id, notified) WHERE notified > last_seen;

CREATE TABLE sessions (
    head_id INTEGER PRIMARY KEY,
    session_key TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    parent TEXT,
    label TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (session_key, agent_id)
);
CREATE INDEX sessions_agent ON sessions (agent_id, session_key);
CREATE INDEX sessions_agent_kind ON sessions (agent_id, kind, session_key);
CREATE INDEX sessions_kind ON sessions (kind, session_key, agent_id);
CREATE INDEX sessions_parent ON sessions (parent, session_key, agent_id) WHERE parent IS NOT NULL;

CREATE TABLE links (
    generation INTEGER PRIMARY KEY AUTOINCREMENT,    -- never reappears, so that no later link repeats this one's dedupe keys
    head_id INTEGER NOT NULL UNIQUE,
    revision INTEGER NOT NULL DEFAULT 1,             -- grows with every change of the row: what was scanned for an older one is too late
    catalog TEXT NOT NULL,
    host_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    source TEXT NOT NULL,
    marker_json TEXT NOT NULL,
    missing_count INTEGER NOT NULL DEFAULT 0,
    own_ids_json TEXT NOT NULL DEFAULT '[]',         -- of the host's own texts that rows were accounted for; never the texts
    adopted_at INTEGER NOT NULL
);
CREATE INDEX links_source ON links (catalog, host_id, thread_id);

CREATE VIEW session_state_events AS
SELECT e.sequence, h.session_key, h.agent_id, e.session_id, e.kind, e.actor_type, e.actor_id, e.run_id, e.occurred_at, e.recorded_at,
    e.dedupe_key, e.summary, e.payload_json
FROM events e JOIN heads h ON h.head_id = e.head_id;

CREATE VIEW session_state_heads AS
SELECT session_key, agent_id, last_sequence, pruned_max_sequence, recorded_at, latest_actor, latest_sequence, other_actor,
    other_sequence, deleted_at
FROM heads WHERE last_sequence > 0;

CREATE VIEW session_watch_positions AS
SELECT w.session_key AS watcher_session_key, t.session_key AS target_session_key, t.agent_id AS target_agent_id,
    c.last_seen AS last_seen_sequence, c.notified AS notified_sequence,
    max(c.last_seen, CASE WHEN t.latest_actor = w.session_key THEN t.other_sequence ELSE t.latest_sequence END) AS material_sequence,
    c.renewed_at
FROM cursors c JOIN heads w ON w.head_id = c.watcher_id JOIN heads t ON t.head_id = c.target_id;

CREATE VIEW session_watch_cursors AS
SELECT watcher_session_key, target_session_key, target_agent_id, last_seen_sequence, notified_sequence, renewed_at
FROM session_watch_positions;

CREATE VIEW session_upstream_links AS
SELECT h.session_key, h.agent_id, l.catalog, l.host_id, l.thread_id, l.source, l.marker_json, l.generation, l.revision, l.missing_count,
    l.own_ids_json, l.adopted_at
FROM links l JOIN heads h ON h.head_id = l.head_id;
