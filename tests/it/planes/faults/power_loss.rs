//! A loss of power, by the model of `tests/src/power_loss.rs`. `cargo xtask soak --faults` runs it
//! for longer.

use std::time::Duration;

use kanat_tests::faults::{Extent, Fault, table};

async fn run(fault: Fault) {
    let row = fault
        .run(Extent {
            time: Duration::from_secs(5),
            seed: 1,
        })
        .await;
    println!("{}", table(std::slice::from_ref(&row)));
    assert_eq!(row.problem, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acked_is_there_after_a_loss_of_power() {
    run(Fault::Power).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_forgets_the_journal_loses_what_was_acked() {
    run(Fault::PowerControl).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acked_after_writes_and_syncs_that_failed_is_there_after_a_loss_of_power() {
    run(Fault::PowerEio).await;
}
