//! The operations on a real server: one module per operation, and one per topic that concerns
//! several. They share one server.

// A test says what went wrong by panicking, and shares its helpers freely.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub
)]

mod support;

mod ops {
    mod arbitrary_input;
    mod cancel_run;
    mod claim_queued;
    mod clock;
    mod concurrent_load;
    mod dead_letter_stale;
    mod discarded_connection;
    mod due_runs;
    mod fail_undispatched;
    mod hand_back;
    mod heartbeat;
    mod lease_state;
    mod lost_replies;
    mod mark_pending_effect;
    mod obstacles;
    mod ownership;
    mod reap;
    mod recover_failure;
    mod renew_lease;
    mod replication;
    mod requeue;
    mod requeue_stale;
    mod session;
    mod session_variables;
    mod shared_sessions;
    mod sql;
    mod status;
    mod stranded_runs;
    mod table_schema;
    mod test_support;
    mod tls;
    mod wake_up;
}
