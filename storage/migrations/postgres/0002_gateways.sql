-- Several gateways on one database: who is there, which sessions each hosts, which notices it has in open turns, and word between them.

CREATE TABLE gateways (
    gateway_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- never reappears: a dead one stays dead
    started_at timestamptz NOT NULL DEFAULT now(),
    closed boolean NOT NULL DEFAULT false            -- it has said goodbye, so that nobody need wait whether it comes back
);

ALTER TABLE heads ADD COLUMN host integer;           -- a gateway_id; NULL: hosted nowhere
CREATE INDEX sessions_host ON heads (host) WHERE host IS NOT NULL;

-- A claim is on the notice that the cursor has open: it goes when the positions move, and with the cursor.
ALTER TABLE cursors ADD COLUMN claimed_by integer;   -- a gateway_id; NULL: in no open turn
CREATE INDEX cursors_claimed ON cursors (claimed_by) WHERE claimed_by IS NOT NULL;

CREATE TABLE hints (
    gateway_id integer NOT NULL,                     -- whom it is for
    watcher_id bigint NOT NULL,
    target_id bigint NOT NULL,
    opened_at bigint NOT NULL,
    PRIMARY KEY (gateway_id, watcher_id, target_id)
);
