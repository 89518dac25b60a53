"""On PostgreSQL: of the system tests those that ask most of a store, as they are, with a schema of a server in place of a file.

The store's own contract has all of its tests on both.
"""

from __future__ import annotations

import pytest

from tests.postgres import PostgresServer
from tests.system import (
    test_rule_3_watchers,
    test_rule_4_notices,
    test_rule_4_restart,
    test_rule_4_turns,
    test_rule_4_wakes,
    test_rule_5_reconciling,
    test_rule_6_retention,
    test_rule_8_gateways,
)

here = test_rule_8_gateways.here
there = test_rule_8_gateways.there
woken = test_rule_4_wakes.woken


@pytest.fixture
def database(postgres: PostgresServer, schema: str) -> str:
    """The test's database, as the fixtures of this folder hand it on."""
    return postgres.url(schema)


test_spawn_keeps_a_taken_notice = test_rule_3_watchers.test_spawn_keeps_a_taken_notice
test_expiry_at_a_start = test_rule_3_watchers.test_expiry_at_a_start
test_deleting_a_watcher_during_its_turn = test_rule_3_watchers.test_deleting_a_watcher_during_its_turn
test_twenty_changes_are_one_notice = test_rule_4_notices.test_twenty_changes_are_one_notice
test_event_during_the_turn = test_rule_4_notices.test_event_during_the_turn
test_every_changed_target_is_shown_once = test_rule_4_notices.test_every_changed_target_is_shown_once
test_pinned_at_the_material_position = test_rule_4_restart.test_pinned_at_the_material_position
test_not_acknowledged_is_shown_again = test_rule_4_restart.test_not_acknowledged_is_shown_again
test_left_while_openings_are_owed = test_rule_4_restart.test_left_while_openings_are_owed
test_restart_after_restart = test_rule_4_restart.test_restart_after_restart
test_raising_turn_gives_back = test_rule_4_turns.test_raising_turn_gives_back
test_many_turns_at_once = test_rule_4_turns.test_many_turns_at_once
test_cancelled_at_every_await = test_rule_4_turns.test_cancelled_at_every_await
test_turn_ends_after_the_gateway = test_rule_4_turns.test_turn_ends_after_the_gateway
test_watchers_are_woken_at_a_start = test_rule_4_wakes.test_watchers_are_woken_at_a_start
test_wakes_after_failed_turns = test_rule_4_wakes.test_wakes_after_failed_turns
test_history_gap_exactly_below_the_pruned_mark = test_rule_5_reconciling.test_history_gap_exactly_below_the_pruned_mark
test_list_paging = test_rule_5_reconciling.test_list_paging
test_two_prunes_at_once = test_rule_6_retention.test_two_prunes_at_once
test_recording_at_once = test_rule_8_gateways.test_recording_at_once
test_the_host_is_woken = test_rule_8_gateways.test_the_host_is_woken
test_a_turn_moves_the_host = test_rule_8_gateways.test_a_turn_moves_the_host
test_opening_moves_the_host = test_rule_8_gateways.test_opening_moves_the_host
test_one_that_runs_takes_over = test_rule_8_gateways.test_one_that_runs_takes_over
test_a_start_beside_others_wakes_nobody_else = test_rule_8_gateways.test_a_start_beside_others_wakes_nobody_else
test_left_over_elsewhere = test_rule_8_gateways.test_left_over_elsewhere
test_in_at_most_one_turn = test_rule_8_gateways.test_in_at_most_one_turn
test_turns_at_once = test_rule_8_gateways.test_turns_at_once
test_given_back = test_rule_8_gateways.test_given_back
test_a_take_whose_caller_is_gone = test_rule_8_gateways.test_a_take_whose_caller_is_gone
test_a_claim_dies_with_its_gateway = test_rule_8_gateways.test_a_claim_dies_with_its_gateway
test_openings_that_another_gateway_owes = test_rule_8_gateways.test_openings_that_another_gateway_owes
test_retention_on_both = test_rule_8_gateways.test_retention_on_both
