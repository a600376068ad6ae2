//! The contract of every message log, as a suite for each implementation:
//! `message_log_contract!` with a [`Harness`] makes one test of every promise.

mod append;
mod backlog;
mod claim;
mod dedupe;
mod events;
mod lease;
mod list;
mod list_environment;
mod operator_decision;
mod order;
mod poll;
mod quota;
mod retain;
mod settle;
mod subject;

use std::sync::Arc;

use crate::MessageLog;

pub use self::append::*;
pub use self::backlog::*;
pub use self::claim::*;
pub use self::dedupe::*;
pub use self::events::*;
pub use self::lease::*;
pub use self::list::*;
pub use self::list_environment::*;
pub use self::operator_decision::*;
pub use self::order::*;
pub use self::poll::*;
pub use self::quota::*;
pub use self::retain::*;
pub use self::settle::*;
pub use self::subject::{Subject, leased, message, ordered, settlement, tenant};

/// Storage for one log, empty at first, that is removed with the harness.
#[async_trait::async_trait]
pub trait Harness: Send + Sync {
    /// Opens the log, again after an earlier one was closed.
    async fn open(&self) -> Arc<dyn MessageLog>;
}

/// `message_log_contract!(harness_expression)`: the expression is evaluated in each test.
#[macro_export]
macro_rules! message_log_contract {
    ($harness:expr) => {
        $crate::message_log_contract! { @tests $harness;
            keeps_what_it_acknowledged_across_a_reopening
            keeps_every_byte_of_what_came_in
            a_probe_leaves_nothing
            groups_concurrent_writes_into_few_commits
            frees_a_message_whose_sender_went_away
            refuses_a_second_message_of_the_same_id_alone
            answers_a_repeat_with_the_first_id
            knows_a_repeat_within_one_group
            stores_a_repeat_that_is_meant_and_leaves_the_key_to_its_holder
            forgets_a_key_after_its_time
            keeps_the_keys_of_flows_apart
            settles_each_outcome
            keeps_messages_that_come_with_their_first_attempt
            fences_a_second_settlement
            fences_the_former_holder_after_a_takeover
            keeps_step_outputs_for_the_next_attempt
            puts_traces_together_in_order
            leaves_alone_what_a_living_node_holds
            hands_the_messages_of_a_dead_node_to_another
            leaves_a_node_its_own_messages_when_its_lease_ran_out
            hands_the_messages_of_an_unknown_owner_to_another
            gives_a_restarted_node_its_messages_at_once
            hands_back_at_once
            renews_only_a_lease_that_stands
            counts_settlements_of_messages_only
            claims_within_the_room_of_each_flow
            claims_as_many_bytes_as_flows_share
            claims_what_is_due_only
            claims_the_oldest_first
            leaves_out_versions_that_the_claimer_does_not_run
            holds_a_message_that_its_holder_cannot_run_with_the_reason
            never_gives_one_message_to_two
            does_not_let_a_backlog_hide_other_flows
            counts_the_backlog_of_each_flow
            returns_the_age_of_the_oldest_message_without_an_attempt
            holds_the_messages_of_a_paused_flow_until_they_are_claimed
            wakes_those_who_wait_for_changes
            works_on_one_message_of_a_key_at_a_time
            orders_by_key_within_one_group
            lets_a_retry_block_only_its_own_key
            gives_up_a_key_with_its_dead_letter
            keeps_an_awaited_message_for_its_node_until_its_turn
            gives_an_awaited_message_that_was_given_up_or_whose_node_left_to_any_other
            lets_a_key_move_on_past_an_awaited_message_that_was_discarded
            frees_an_awaited_message_whose_sender_went_away
            puts_a_retried_dead_letter_before_those_that_wait
            moves_on_when_the_head_is_discarded
            retries_a_dead_letter_with_as_many_attempts_again
            retries_under_the_ordering_key_of_the_version
            retries_under_the_idempotency_key_of_the_version
            retries_nothing_but_a_dead_letter
            discards_what_waits_and_nothing_that_runs
            replays_as_a_new_message
            ends_what_waits_of_a_deleted_flow_and_leaves_the_rest_to_its_holders
            streams_every_change_in_order
            shows_a_message_as_it_stood_at_each_event
            resumes_a_stream_after_a_reopening
            keeps_the_streams_of_others_apart
            ends_a_page_of_the_stream_before_it_is_large
            lists_newest_first_with_a_total
            filters_a_list
            lists_several_statuses_in_one_order
            searches_payload_id_and_error_as_plain_text
            keeps_a_cursor_while_messages_arrive
            ends_a_page_that_would_grow_too_large
            lists_an_environment_in_the_order_of_the_log
            filters_the_list_of_an_environment
            counts_what_waits_of_a_paused_flow_as_held
            shows_nothing_to_another_tenant
            drops_old_finished_messages_only
            drops_old_finished_messages_of_some_flows
            never_gives_an_event_id_twice
            keeps_plans_as_long_as_something_needs_them
            adds_plans_that_it_lacks_and_replaces_none
            gives_a_poll_to_one_at_a_time
            takes_a_poll_over_when_its_holder_is_silent
            gives_a_poll_to_the_next_boot_of_its_holder_at_once
            polls_a_later_version_at_once
            knows_the_records_that_a_flow_has_seen
            never_lets_in_more_than_a_key_allows
            gives_the_bucket_of_a_key_to_one_that_is_alone_and_shares_it_among_many
            takes_an_exchange_that_is_sent_again_once
            adds_up_how_often_keys_were_used
            counts_on_after_a_reopening
            knows_how_many_nodes_there_are
            forgets_connectors_that_nobody_calls
            returns_the_status_of_polls_and_forgets_them
            refuses_writes_after_it_was_closed
        }
    };
    (@tests $harness:expr; $($test:ident)*) => {$(
        #[tokio::test]
        async fn $test() {
            $crate::contract::$test(&$harness).await;
        }
    )*};
}
