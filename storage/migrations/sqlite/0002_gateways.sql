-- Several gateways on one database: who is there, which sessions each hosts, which notices it has in open turns, and word between them.

CREATE TABLE gateways (
    gateway_id INTEGER PRIMARY KEY AUTOINCREMENT,    -- never reappears: a dead one stays dead
    started_at INTEGER NOT NULL
);

ALTER TABLE sessions ADD COLUMN host INTEGER;        -- a gateway_id; NULL: hosted nowhere
CREATE INDEX sessions_host ON sessions (host) WHERE host IS NOT NULL;

-- A claim is on the notice that the cursor has open: it goes when the positions move, and with the cursor.
ALTER TABLE cursors ADD COLUMN claimed_by INTEGER;   -- a gateway_id; NULL: in no open turn
CREATE INDEX cursors_claimed ON cursors (claimed_by) WHERE claimed_by IS NOT NULL;

CREATE TABLE hints (
    gateway_id INTEGER NOT NULL,                     -- whom it is for
    watcher_id INTEGER NOT NULL,
    target_id INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    PRIMARY KEY (gateway_id, watcher_id, target_id)
) WITHOUT ROWID;
