//! `kanat member` on a whole service: from an invitation to a removal.

use kanat_tests::TestApp;

use super::*;

/// Starts a service whose people log in at `issuer`.
async fn start(issuer: &TokenIssuer, settings: &Cli) -> TestApp {
    let file = settings.file(
        "kanat.toml",
        &format!(
            "[[oidc]]\nissuer = \"{}\"\naudience = \"{CLIENT_ID}\"\nclient_id = \
             \"{CLIENT_ID}\"\nscopes = [\"openid\", \"email\", \"profile\", \"offline_access\"]\n",
            issuer.url()
        ),
    );
    let file = settings.home().join(file);
    TestApp::start_with(&[("KANAT_CONFIG", file.to_str().unwrap())]).await
}

#[tokio::test]
async fn an_invited_person_joins_works_and_is_removed() {
    let issuer = TokenIssuer::start().await;
    let owner_home = Cli::new();
    let app = start(&issuer, &owner_home).await;
    let owner = Cli::of(&app);
    let anna_cli = Cli::new();

    let early = log_in(&anna_cli, &app.base, &issuer, &anna()).await;
    assert_eq!(early.code, Some(0), "{early:?}");
    assert!(early.stderr.contains("kanat member accept"), "{early:?}");
    anna_cli.run(&["flow", "list"]).await.fails(1);

    let invite = ["member", "invite", "anna@example.com", "--role", "viewer"];
    let first = owner.run(&invite).await;
    assert!(first.stderr.contains("no mail was sent"), "{first:?}");
    let first = first.expect();
    let link = owner
        .run(&["member", "resend", "ANNA@example.com"])
        .await
        .expect();
    assert_ne!(link, first);
    let refused = owner.run(&["member", "accept", link.trim()]).await.fails(1);
    assert!(refused.contains("kanat login --oidc"), "{refused}");
    let former = first.trim();
    anna_cli.run(&["member", "accept", former]).await.fails(1);
    let of_other = former.replace(&app.base, "http://other.example");
    let refused = anna_cli
        .run(&["member", "accept", &of_other])
        .await
        .fails(1);
    assert!(
        refused.contains("the link is of http://other.example"),
        "{refused}"
    );
    let joined = anna_cli.run(&["member", "accept", link.trim()]).await;
    let joined = joined.expect();
    assert!(
        joined.contains("anna@example.com is viewer now"),
        "{joined}"
    );

    let who = anna_cli.run(&["whoami", "-o", "json"]).await.json();
    assert_eq!(who["type"], "user");
    assert_eq!(who["email"], "anna@example.com");
    let again = log_in(&anna_cli, &app.base, &issuer, &anna())
        .await
        .expect();
    assert!(again.contains("Anna <anna@example.com>, viewer"), "{again}");

    let listed = owner.run(&["member", "list", "-o", "json"]).await.json();
    let anna_id = listed["data"][0]["id"].as_str().unwrap().to_owned();
    let role = ["member", "role", &anna_id, "editor", "-o", "json"];
    let changed = owner.run(&role).await.json();
    assert_eq!(changed["role"], "editor");
    let shown = owner
        .run(&["member", "show", "anna@example.com"])
        .await
        .expect();
    assert!(shown.contains("editor"), "{shown}");
    let near = owner
        .run(&["member", "show", "ana@example.com"])
        .await
        .fails(1);
    assert!(near.contains("anna@example.com"), "{near}");

    let log = ["audit", "list", "--user-id", "ANNA@example.com"];
    let log = owner.run(&log).await.expect();
    assert!(log.contains("member.accept"), "{log}");
    let unknown = ["audit", "list", "--user-id", "anna"];
    let unknown = owner.run(&unknown).await.fails(2);
    assert!(unknown.contains("is no id"), "{unknown}");

    let remove = ["member", "remove", "anna@example.com"];
    owner.run(&remove).await.fails(1);
    owner
        .run(&[&remove[..], &["--yes"]].concat())
        .await
        .expect();
    let refused = anna_cli.run(&["flow", "list"]).await.fails(1);
    assert!(refused.contains("member"), "{refused}");
}
