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
