//! `--dry-run` changes nothing, and fails where the command itself would fail.

use crate::service::{Service, text};

/// A flow that a published API may call.
const QUOTES: &str = "flow: quotes\nversion: 1\nsource:\n  trigger: api\ntarget:\n  connector: \
                      erp\n  endpoint: /quotes\n  method: POST\nmapping:\n  a: source.a\n";

/// A service with an instance `erp`, and a published API `quotes` of the flow `quotes`.
fn service_with_api() -> Service {
    let service = Service::start();
    let erp = ["connector", "create", "http", "erp", "--set"];
    service.run(&[&erp[..], &["base_url=http://127.0.0.1:1"]].concat());
    let file = service.file("quotes.yaml", QUOTES);
    service.run(&["flow", "apply", &file]);
    service.run(&["api", "create", "quotes", "quotes", "--name", "quotes"]);
    service
}

#[test]
fn a_dry_run_of_an_update_leaves_the_api_as_it_is() {
    let service = service_with_api();
    let show = ["api", "show", "quotes", "-o", "json"];
    let before = service.run(&show);
    for (change, announced) in [
        (["--auth", "none"], "anybody may call POST /quotes"),
        (["--deadline", "2s"], "would be changed: deadline"),
        (["--strict-response", "false"], "strictResponse"),
        (["--path", "other"], "get 404"),
    ] {
        let update = [&["api", "update", "quotes", "--dry-run"][..], &change].concat();
        let done = service.output(&update);
        assert!(done.status.success(), "{change:?}: {}", text(&done.stderr));
        assert!(
            text(&done.stdout).contains(announced),
            "{change:?}: {}",
            text(&done.stdout)
        );
        assert_eq!(service.run(&show), before, "{change:?}");
    }
}

#[test]
fn an_api_is_opened_to_everybody_after_a_question() {
    let service = service_with_api();
    let open = ["api", "update", "quotes", "--auth", "none"];
    let (code, said) = service.fail(&open);
    assert_eq!(code, Some(1));
    assert!(said.contains("anybody may call POST /quotes"), "{said}");
    assert!(said.contains("--yes"), "{said}");
    let opened = service.run(&[&open[..], &["--yes"]].concat());
    assert!(opened.contains("Auth:"), "{opened}");
    assert!(opened.contains("none"), "{opened}");
}

/// Asserts that a command fails, and that its dry run ends with the same code and the same error.
fn assert_fails_alike(service: &Service, arguments: &[&str], expected: &str) {
    let dry_run = [arguments, &["--dry-run"]].concat();
    let (dry_code, dry_said) = service.fail(&dry_run);
    let acting = [arguments, &["--yes"]].concat();
    let (code, said) = service.fail(&acting);
    assert!(dry_said.contains(expected), "{arguments:?}: {dry_said}");
    assert_eq!(dry_said, said, "{arguments:?}");
    assert_eq!(dry_code, code, "{arguments:?}");
}

#[test]
fn a_dry_run_of_what_would_be_refused_fails_as_the_command_would() {
    let service = service_with_api();
    service.run(&["lookup", "create", "sizes", "--env", "staging"]);
    for (arguments, expected) in [
        (&["environment", "delete", "nosuch"][..], "nosuch"),
        (
            &["environment", "delete", "development"],
            "is the default one, which stays",
        ),
        (
            &["environment", "delete", "staging"],
            "is not empty, delete first: lookup tables (1)",
        ),
        (&["version", "retire", "quotes", "v77"], "v77"),
        (&["version", "retire", "quotes", "v1"], "--force"),
        (&["message", "retry", "msg_nope"], "msg_nope"),
        (&["message", "replay", "msg_nope"], "msg_nope"),
        (&["message", "discard", "msg_nope"], "msg_nope"),
        (
            &["message", "retry", "msg_nope", "--flow", "quotes"],
            "no message of this flow",
        ),
        (&["flow", "rollback", "quotes", "v99"], "has no version 99"),
        (&["flow", "delete", "flw_nope"], "flw_nope"),
        (&["flow", "rotate-webhook-token", "quotes"], "webhook"),
        (&["lookup", "delete", "lt_nope"], "lt_nope"),
        (&["api", "delete", "api_nope"], "api_nope"),
        (&["key", "revoke", "quotes", "ck_nope"], "ck_nope"),
        (&["key", "rotate", "quotes", "ck_nope"], "ck_nope"),
        (&["member", "remove", "mem_nope"], "mem_nope"),
    ] {
        assert_fails_alike(&service, arguments, expected);
    }
}

#[test]
fn a_dry_run_of_a_deploy_has_the_faults_of_the_draft() {
    let service = service_with_api();
    let broken = QUOTES.replace("source.a", "source.a | lookup(nosuch)");
    let file = service.file("broken.yaml", &broken);
    service.run(&["flow", "update", "quotes", &file]);
    let (code, said) = service.fail(&["flow", "deploy", "quotes", "--dry-run"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("nosuch"), "{said}");
    assert!(said.contains("error: flow quotes has 1 error"), "{said}");
    let (code, said) = service.fail(&["flow", "deploy", "quotes"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("error: flow quotes has 1 error"), "{said}");
}
