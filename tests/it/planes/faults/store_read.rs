//! The store's read fails, or gives nothing: no node drops a plan, webhooks are served, and all
//! heals when the store is itself again.

use kanat_tests::split::{Split, TestProcess};
use kanat_tests::until;

use super::versions::{ProbeFlow, at, deploy, flow, one_set};

/// Fault of a table.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// A read gets an error.
    Fails,
    /// A read gets no rows.
    GivesNothing,
}

#[tokio::test]
async fn no_node_drops_a_plan_when_the_store_cannot_be_read_or_gives_nothing() {
    let split = Split::new();
    let mut control = split.control_plane("control").await;
    let mut nodes = [
        split.node("a", &[&control]).await,
        split.node("b", &[&control]).await,
    ];
    let (witness, _) = ProbeFlow::start(&control.api).await;
    let (id, webhook) = control.api.deployed(&flow("orders", 1)).await;
    let cases = [
        // What a control plane that runs looks at all the time.
        (
            "environment",
            Fault::Fails,
            "cannot see what other processes change",
        ),
        (
            "environment",
            Fault::GivesNothing,
            "the store has no environment at all",
        ),
        // What it reads as a whole when it starts.
        ("published", Fault::Fails, "cannot read what is published"),
        (
            "published",
            Fault::GivesNothing,
            "is not what was written there",
        ),
    ];
    for (version, (table, fault, said)) in (1..).zip(cases) {
        let lines = occurrences(&control, said);
        match fault {
            Fault::Fails => split.database.hide_table(table).unwrap(),
            Fault::GivesNothing => split.database.empty_table(table).unwrap(),
        }
        if table == "published" {
            control.kill().await;
            control.restart().await;
        }
        until(
            &format!("the control plane has read {table}: {said:?}"),
            || async { (occurrences(&control, said) > lines).then_some(()) },
        )
        .await;
        // A node that starts meanwhile has to ask for everything it is to run.
        nodes[1].kill().await;
        nodes[1].restart().await;
        let mut served = 0;
        for node in &nodes {
            node.becomes_ready().await;
            for _ in 0..20 {
                assert_eq!(
                    witness.ask(&node.api, &at(node, &webhook)).await.version,
                    version,
                    "{table} {fault:?}"
                );
                served += 1;
            }
        }
        split.database.show_table(table).unwrap();
        one_set(&control.api, 2).await;
        deploy(&control.api, &id, &flow("orders", version + 1)).await;
        for node in &nodes {
            assert_eq!(
                witness.ask(&node.api, &at(node, &webhook)).await.version,
                version + 1,
                "{table} {fault:?}"
            );
        }
        println!("{table} {fault:?}: {served} messages served, 0 plans dropped, healed");
    }
}

/// How often a process has said something.
fn occurrences(process: &TestProcess, text: &str) -> usize {
    process.log().matches(text).count()
}
