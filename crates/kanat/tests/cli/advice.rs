//! What commands answer to a slip, and to a step that leads nowhere.

use crate::service::{Service, text};

/// Returns the command that changes the instance `erp`.
fn update<'a>(changes: &[&'a str]) -> Vec<&'a str> {
    [&["connector", "update", "erp"][..], changes].concat()
}

#[test]
fn a_field_of_an_instance_is_taken_away_by_its_name() {
    let service = Service::start();
    let create = ["connector", "create", "http", "erp"];
    let config = [
        "--set",
        "base_url=http://127.0.0.1:1",
        "--set",
        "token=t",
        "--set",
        "webhook_secret=w",
    ];
    service.run(&[&create[..], &config].concat());
    let (code, said) = service.fail(&update(&["--unset", "webhok_secret"]));
    assert_eq!(code, Some(1));
    assert!(said.contains("did you mean \"webhook_secret\""), "{said}");
    let (code, said) = service.fail(&update(&["--unset", "token"]));
    assert_eq!(code, Some(1));
    assert!(said.contains("--set auth=none --unset token"), "{said}");
    let updated = service.run(&update(&["--set", "auth=none", "--unset", "token"]));
    assert!(updated.contains("webhook_secret"), "{updated}");
    assert!(!updated.contains("token"), "{updated}");
    let updated = service.run(&update(&["--unset", "webhook_secret"]));
    assert!(!updated.contains("webhook_secret"), "{updated}");
}

#[test]
fn an_environment_whose_name_is_cut_short_is_named() {
    let service = Service::start();
    for command in [
        &["environment", "show", "prod"][..],
        &["environment", "update", "prod", "--protected"],
        &["environment", "delete", "prod", "--yes"],
    ] {
        let (code, said) = service.fail(command);
        assert_eq!(code, Some(1), "{command:?}");
        assert!(said.contains("did you mean \"production\""), "{said}");
        assert!(said.contains("`kanat environment list`"), "{said}");
    }
}

#[test]
fn a_key_that_its_api_does_not_take_is_not_handed_over() {
    let service = Service::start();
    let erp = ["connector", "create", "http", "erp", "--set"];
    service.run(&[&erp[..], &["base_url=http://127.0.0.1:1"]].concat());
    let flow = "flow: stock\nversion: 1\nsource:\n  trigger: api\ntarget:\n  connector: erp\n  \
                endpoint: /\n  method: POST\nmapping:\n  a: source.a\n";
    let flow = service.file("stock.yaml", flow);
    service.run(&["flow", "apply", &flow]);
    let issuer = r#"{"issuer":"https://id.example","audience":"stock"}"#;
    let issuer = service.file("issuer.json", issuer);
    let create = ["api", "create", "stock", "stock", "--name", "stock"];
    let oauth2 = ["--auth", "oauth2", "--oauth2", &issuer];
    service.run(&[&create[..], &oauth2].concat());
    let created = service.output(&["key", "create", "stock", "acme"]);
    let hint = text(&created.stderr);
    assert!(created.status.success(), "{hint}");
    assert!(text(&created.stdout).starts_with("kanat_ck_"));
    assert!(hint.contains("access tokens of its issuer"), "{hint}");
    assert!(!hint.contains("hand it to"), "{hint}");
}
