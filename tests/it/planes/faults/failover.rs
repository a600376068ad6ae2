//! A primary that is killed under load, and a synchronous standby that is promoted, under processes
//! that stay.

use std::time::{Duration, Instant};

use kanat_testing_postgres::{Cluster, Durability, Programs};
use kanat_tests::until;

use super::database::Deployment;
use super::kept::{FLOW, Kill};
use super::senders::SENDERS;

/// Longest time from a promotion to the first answers, of nodes and of control planes.
const FAILOVER_TIMEOUT: Duration = Duration::from_secs(5);

/// Once there, and once back to the server of before, which has followed its successor meanwhile.
#[tokio::test]
async fn a_promoted_standby_is_found_by_all_processes_and_has_everything_that_was_acked() {
    let cluster = Cluster::start(Programs::find_or_install().unwrap(), Durability::OnDisk).unwrap();
    cluster.create_database("kanat").unwrap();
    let standby = cluster.synchronous_standby().unwrap();
    let list = format!("{},{}", cluster.url("kanat"), standby.url("kanat"));
    let deployment = Deployment::start_at(cluster, &list, &[("KANAT_LEASE_SECONDS", "2")]).await;
    let mut senders = deployment.senders();
    let mut kills = Vec::new();
    for (primary, standby) in [
        (&deployment.cluster, &standby),
        (&standby, &deployment.cluster),
    ] {
        senders.ack(60).await;
        primary.kill().unwrap();
        kills.push(Kill::unseen());
        let both = [&deployment.control, &deployment.node];
        for process in both {
            until("it says that it is not ready", || async {
                (process.readiness().await == 503).then_some(())
            })
            .await;
        }
        let begun = Instant::now();
        standby.promote().unwrap();
        senders.ack(SENDERS + 1).await;
        let taken = begun.elapsed();
        for process in both {
            process.becomes_ready().await;
        }
        let ready = begun.elapsed();
        let flow = FLOW.replace("survivors", &format!("flow-{}", kills.len()));
        deployment.control.api.deployed(&flow).await;
        let deployed = begun.elapsed();
        println!(
            "after the promotion: messages are taken at {} ms, all are ready at {} ms, a flow is \
             deployed at {} ms",
            taken.as_millis(),
            ready.as_millis(),
            deployed.as_millis(),
        );
        assert!(deployed < FAILOVER_TIMEOUT);
        primary.start_as_standby_of(standby).unwrap();
        standby.wait_for_standby().unwrap();
    }
    senders.stop();
    senders.finished().await;
    deployment
        .nothing_is_lost("PostgreSQL failed over", &senders, &kills)
        .await;
}
