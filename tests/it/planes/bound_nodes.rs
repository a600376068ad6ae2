//! Nodes whose token or certificate opens some environments alone.

use kanat_tests::authority::Authority;
use kanat_tests::split::{Split, TestProcess};
use kanat_tests::until;
use sha2::{Digest, Sha256};

/// Waits until the node has got this answer, and has no plans.
async fn is_refused(node: &TestProcess, why: &str) {
    until("the node is told why", || async {
        node.log().contains(why).then_some(())
    })
    .await;
    assert_eq!(node.readiness().await, 503, "{}", node.log());
}

fn settings(split: &Split, text: &str) -> String {
    let file = split.folder.path().join("control.toml");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_token_that_is_bound_opens_its_environments_and_no_other() {
    const TOKEN: &str = "the-token-of-the-nodes-of-staging";
    let split = Split::new();
    let entry = format!(
        "[[nodes]]\ntoken_sha256 = \"{}\"\nenvironments = [\"staging\", \"development\"]\n",
        hex::encode(Sha256::digest(TOKEN))
    );
    let file = settings(&split, &entry);
    let control = split
        .control_plane_with("control", &[("KANAT_CONFIG", &file)])
        .await;
    let node = async |name: &str, environments: &str| {
        let more = [
            ("KANAT_JOIN_TOKEN", TOKEN),
            ("KANAT_ENVIRONMENTS", environments),
        ];
        split.node_with(name, &[&control], &more).await
    };
    node("bound", "staging").await.becomes_ready().await;
    node("both", "staging,development")
        .await
        .becomes_ready()
        .await;
    let other = node("other", "production").await;
    is_refused(
        &other,
        "asks for environment \\\"production\\\", which its token or certificate is not bound to",
    )
    .await;
    let more = node("more", "staging,production").await;
    is_refused(&more, "asks for environment \\\"production\\\"").await;
    let all = split
        .node_with("all", &[&control], &[("KANAT_JOIN_TOKEN", TOKEN)])
        .await;
    is_refused(
        &all,
        "and it asks for all: --environments names those that it serves",
    )
    .await;
    // The token of all environments opens all, as before.
    split
        .node("unbound", &[&control])
        .await
        .becomes_ready()
        .await;
}

#[tokio::test]
async fn a_certificate_that_is_bound_opens_its_environments_and_no_other() {
    let split = Split::new();
    let ours = Authority::new(split.folder.path(), "ours");
    let file = settings(
        &split,
        "[[nodes]]\ncertificate = \"bound.example.com\"\nenvironments = [\"staging\"]\n\n\
         [[nodes]]\ncertificate = \"more.example.com\"\nenvironments = [\"staging\"]\n",
    );
    let control = split
        .control_plane_over_tls_with("control", &ours, &[("KANAT_CONFIG", &file)])
        .await;
    let node = async |name: &str, environments: &str| {
        let more = [("KANAT_ENVIRONMENTS", environments)];
        split
            .node_over_tls_with(name, &control, &ours, &ours, &more)
            .await
    };
    node("bound", "staging").await.becomes_ready().await;
    is_refused(
        &node("more", "production").await,
        "which its token or certificate is not bound to",
    )
    .await;
    // One that the authority vouches for, and that no entry names.
    is_refused(
        &node("unknown", "staging").await,
        "no join token and no certificate that this control plane admits",
    )
    .await;
}
