//! The client commands, each against a running service.

use std::io::{Read, Write};
use std::process::Stdio;

use crate::service::{KEY, Service, example, text};

#[test]
fn lookup_tables_are_known_by_name() {
    let service = Service::start();
    service.run(&[
        "lookup",
        "create",
        "countries",
        "--description",
        "ISO codes",
    ]);
    service.run(&["lookup", "set", "countries", "GERMANY", "DE"]);
    let imported = service.run(&[
        "lookup",
        "import",
        "countries",
        &example("lookups/country_codes.csv"),
    ]);
    assert_eq!(imported, "countries has 20 entries and is version 3\n");
    service.run(&["lookup", "set", "countries", "CÔTE D'IVOIRE / x", "CI"]);
    assert!(
        service
            .run(&["lookup", "show", "countries", "--search", "IVOIRE"])
            .contains("CI")
    );
    service.run(&["lookup", "remove", "countries", "CÔTE D'IVOIRE / x"]);
    let exported = service.run(&["lookup", "export", "countries"]);
    assert!(
        exported.starts_with("key,value\n") && exported.contains("KAZAKHSTAN,KZ\n"),
        "{exported}"
    );
    assert!(!exported.contains("IVOIRE"));
    assert!(service.run(&["lookup", "list"]).contains("countries"));
    service.run(&["lookup", "delete", "countries", "--yes"]);
    assert_eq!(service.run(&["lookup", "list"]), "none\n");
    let (code, said) = service.fail(&["lookup", "remove", "countries", ".."]);
    assert_eq!(code, Some(2), "{said}");
}

#[test]
fn what_cannot_be_undone_is_asked_for_on_a_terminal() {
    let service = Service::start();
    service.run(&["lookup", "create", "countries"]);
    let deleted = service.output(&["lookup", "delete", "countries"]);
    assert_eq!(deleted.status.code(), Some(1));
    assert!(
        text(&deleted.stderr).contains("with its entries")
            && text(&deleted.stderr).contains("--yes")
    );
    assert!(
        service
            .run(&["lookup", "delete", "countries", "--dry-run"])
            .starts_with("lookup table countries (lt_")
    );
    assert!(
        service.run(&["lookup", "list"]).contains("countries"),
        "nothing was done"
    );
    // `script` gives the command a terminal.
    for (answer, code, left) in [
        ("n\n", Some(1), true),
        ("\n", Some(1), true),
        ("y\n", Some(0), false),
    ] {
        let mut command = service.command_of(
            "script",
            &["-qec", "\"$KANAT\" lookup delete countries", "/dev/null"],
        );
        command
            .env("KANAT", env!("CARGO_BIN_EXE_kanat"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(answer.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(
            text(&output.stdout).contains("[y/N]"),
            "{}",
            text(&output.stdout)
        );
        assert_eq!(
            output.status.code(),
            code,
            "{answer:?}: {}",
            text(&output.stdout)
        );
        assert_eq!(
            service.run(&["lookup", "list"]).contains("countries"),
            left,
            "{answer:?}"
        );
    }
}

#[test]
fn hints_are_not_part_of_the_answer() {
    let service = Service::start();
    let created = service.output(&["lookup", "create", "countries"]);
    assert_eq!(text(&created.stdout), "lookup table countries is created\n");
    assert!(
        text(&created.stderr).contains("kanat lookup import countries FILE"),
        "{}",
        text(&created.stderr)
    );
    for key in 0..60 {
        service.run(&["lookup", "set", "countries", &format!("key {key}"), "x"]);
    }
    let shown = service.output(&["lookup", "show", "countries", "--limit", "10"]);
    assert!(
        text(&shown.stderr).starts_with("10 of 60 entries; "),
        "{}",
        text(&shown.stderr)
    );
    service.run(&[
        "lookup",
        "create",
        "long",
        "--description",
        &"d".repeat(150),
    ]);
    let list = service.output(&["lookup", "list", "--limit", "1"]);
    assert!(
        text(&list.stdout).contains(&"d".repeat(150)),
        "cut in a pipe: {}",
        text(&list.stdout)
    );
    assert_eq!(text(&list.stderr), "1 of 2; --offset 1 goes on\n");
}

#[test]
fn connector_instances_keep_their_secrets() {
    let service = Service::start();
    assert!(service.run(&["connector", "catalog"]).contains("http"));
    let entry = service.run(&["connector", "catalog", "http"]);
    assert!(entry.contains("base_url"), "{entry}");
    assert!(entry.contains("`action: http.ACTION`"), "{entry}");
    let secret = service.file("token", "very-secret\n");
    let token = format!("token=@{secret}");
    let create = [
        "connector",
        "create",
        "http",
        "erp",
        "--set",
        "base_url=http://127.0.0.1:9",
        "--set",
        "auth=bearer",
        "--set",
        &token,
    ];
    service.run(&create);
    let shown = service.run(&["connector", "show", "erp"]);
    assert!(
        shown.contains("********") && !shown.contains("very-secret"),
        "{shown}"
    );
    service.run(&["connector", "update", "erp", "--set", "headers.X-Tenant=7"]);
    assert!(
        service
            .run(&["connector", "show", "erp", "-o", "json"])
            .contains("\"X-Tenant\": \"7\"")
    );
    let (code, said) = service.fail(&["connector", "test", "erp"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        service
            .run(&["connector", "list"])
            .contains("http://127.0.0.1:9")
    );
    service.run(&["connector", "delete", "erp", "--yes"]);
    assert_eq!(service.run(&["connector", "list"]), "none\n");
}

#[test]
fn a_flow_goes_from_a_file_to_its_messages() {
    let service = Service::start();
    service.run(&[
        "connector",
        "create",
        "http",
        "erp",
        "--set",
        "base_url=http://127.0.0.1:9",
    ]);
    let flow = example("flows/stock-count.yaml");
    let sample = example("flows/stock-count.sample.json");
    assert!(
        service
            .run(&["flow", "validate", &flow])
            .ends_with("is valid\n")
    );
    assert!(
        service
            .run(&["flow", "create", &flow])
            .contains("is a draft")
    );
    let tested = service.run(&[
        "flow",
        "test",
        "stock-count",
        "--data",
        &sample,
        "-o",
        "json",
    ]);
    assert!(tested.contains("9007199254740993"), "{tested}");
    let tested = service.output(&["flow", "test", "stock-count", "--data", &sample]);
    assert!(
        serde_json::from_slice::<serde_json::Value>(&tested.stdout).is_ok(),
        "{}",
        text(&tested.stdout)
    );
    assert!(
        text(&tested.stderr).contains("target: POST http://127.0.0.1:9/"),
        "{}",
        text(&tested.stderr)
    );
    service.run(&["flow", "deploy", "stock-count", "--summary", "first"]);
    let again = service.run(&["flow", "deploy", "stock-count"]);
    assert!(
        again.starts_with("flow stock-count is unchanged (active, version 1)\n"),
        "{again}"
    );
    let changed = std::fs::read_to_string(&flow)
        .unwrap()
        .replace("source.by | trim", "source.by");
    service.run(&[
        "flow",
        "update",
        "stock-count",
        &service.file("changed.yaml", &changed),
    ]);
    service.run(&["flow", "deploy", "stock-count", "--summary", "second"]);
    let versions = service.run(&["flow", "versions", "stock-count"]);
    assert!(
        versions.contains("first") && versions.contains("second"),
        "{versions}"
    );
    assert!(
        service
            .run(&["flow", "rollback", "stock-count", "1"])
            .contains("version 3")
    );
    assert_eq!(
        service.run(&["flow", "pause", "stock-count"]),
        "flow stock-count is paused\n"
    );
    let accepted = service.run(&["flow", "run", "stock-count", "--data", &sample]);
    let id = accepted
        .split_whitespace()
        .find(|word| word.starts_with("msg_"))
        .unwrap()
        .to_owned();
    let shown = service.run(&["message", "show", &id, "-o", "yaml"]);
    assert!(
        shown.contains("status: held") && shown.contains("counted: 9007199254740993"),
        "{shown}"
    );
    assert!(service.run(&["logs", "stock-count"]).contains(&id));
    assert!(
        service
            .run(&["message", "list", "stock-count", "--status", "held"])
            .contains(&id)
    );
    assert!(
        service
            .run(&["message", "discard", &id])
            .contains("discarded")
    );
    let replayed = service.run(&["message", "replay", &id]);
    assert!(replayed.contains(" as msg_"), "{replayed}");
    assert_eq!(
        service.run(&["flow", "resume", "stock-count"]),
        "flow stock-count is active\n"
    );
    assert!(
        service
            .run(&["flow", "show", "stock-count"])
            .contains("trigger: manual")
    );
    service.run(&["flow", "delete", "stock-count", "--yes"]);
    assert_eq!(service.run(&["flow", "list"]), "none\n");
}

#[test]
fn keys_environments_and_nodes_are_managed() {
    let service = Service::start();
    let key = service.run(&[
        "api-key",
        "create",
        "ci",
        "--role",
        "viewer",
        "--environment",
        "staging",
    ]);
    assert!(
        key.starts_with("kanat_ak_") && key.lines().count() == 1,
        "{key}"
    );
    let who = service.run(&["whoami", "--api-key", key.trim()]);
    assert!(
        who.contains(&service.url) && who.contains("viewer") && who.contains("staging"),
        "{who}"
    );
    assert!(service.run(&["api-key", "list"]).contains("ci"));
    let (code, said) = service.fail(&["api-key", "revoke", "ci"]);
    assert!(
        code == Some(1) && said.contains("viewer") && said.contains("--yes"),
        "{said}"
    );
    let (_, said) = service.fail(&[
        "flow",
        "list",
        "--env",
        "development",
        "--api-key",
        key.trim(),
    ]);
    assert!(
        said.contains("bound to another environment") && !said.contains("role"),
        "{said}"
    );
    service.run(&[
        "api-key",
        "create",
        "soon",
        "--role",
        "viewer",
        "--expires",
        "1h",
    ]);
    service.run(&["api-key", "create", "later", "--expires", "2099-11-27"]);
    let keys = service.run(&["api-key", "list"]);
    assert!(keys.contains("2099-11-27T00:00:00.000Z"), "{keys}");
    service.run(&["api-key", "revoke", "ci", "--yes"]);
    service.fail(&["whoami", "--api-key", key.trim()]);
    let (_, said) = service.fail(&["api-key", "revoke", "c1", "--yes"]);
    assert!(said.contains("kanat api-key list"), "{said}");

    assert!(
        service
            .run(&["env", "create", "canary"])
            .starts_with("environment canary is created")
    );
    service.run(&[
        "environment",
        "update",
        "canary",
        "--base-url",
        "https://canary.example.com",
    ]);
    assert!(
        service
            .run(&["env", "list"])
            .contains("https://canary.example.com")
    );
    service.run(&["env", "update", "canary", "--protected"]);
    let shown = service.run(&["env", "show", "canary"]);
    assert!(shown.contains("Protected:"), "{shown}");
    assert!(shown.contains("true"), "{shown}");
    service.run(&["env", "update", "canary", "--protected=false"]);
    let set = ["--variable", "REGION=eu-1", "--variable", "SHOP=a=b"];
    service.run(
        &[
            &["env", "update", "canary", "--retention-days", "7"],
            &set[..],
        ]
        .concat(),
    );
    let shown = service.run(&["env", "show", "canary"]);
    for part in ["REGION=eu-1", "SHOP=a=b", "Retention days:"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let removed = ["--remove-variable", "REGION", "--retention-days", "0"];
    service.run(&[&["env", "update", "canary"], &removed[..]].concat());
    let shown = service.run(&["env", "show", "canary"]);
    assert!(shown.contains("SHOP=a=b"), "{shown}");
    assert!(!shown.contains("REGION"), "{shown}");
    service.run(&["env", "create", "short-lived"]);
    service.run(&["env", "delete", "short-lived", "--yes"]);
    service.fail(&["env", "show", "short-lived"]);
    let (code, said) = service.fail(&["--env", "canari", "flow", "list"]);
    assert!(
        code == Some(1) && said.contains("did you mean \"canary\""),
        "{said}"
    );
    assert!(
        service
            .run(&["node", "list"])
            .contains(env!("CARGO_PKG_VERSION"))
    );
    let version = service.run(&["version"]);
    assert!(
        version.starts_with(concat!("kanat ", env!("CARGO_PKG_VERSION"), " (")),
        "{version}"
    );
}

#[test]
fn a_slip_in_a_name_is_answered_with_the_nearest() {
    let service = Service::start();
    service.run(&["flow", "create", &example("flows/stock-count.yaml")]);
    let (_, said) = service.fail(&["flow", "show", "stok-count"]);
    assert!(said.contains("did you mean \"stock-count\""), "{said}");
    let (_, said) = service.fail(&["flow", "show", "stock-count", "--env", "staging"]);
    assert!(
        said.contains("environment \"development\" has one"),
        "{said}"
    );
    let (_, said) = service.fail(&["connector", "catalog", "slak"]);
    assert!(said.contains("did you mean \"slack\""), "{said}");
}

#[test]
fn a_shell_completes_the_names_of_flows() {
    let service = Service::start();
    service.run(&["flow", "create", &example("flows/stock-count.yaml")]);
    assert!(service.run(&["completion", "bash"]).contains("COMPLETE"));
    let mut command = service.command(&["--", "kanat", "flow", "show", "st"]);
    command
        .env("COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", "3")
        .env("_CLAP_IFS", "\n");
    let told = text(&command.output().unwrap().stdout);
    assert_eq!(told.trim(), "stock-count");
}

#[test]
fn the_key_that_login_asks_for_does_not_show() {
    let service = Service::start();
    let mut command = service.command_of("script", &["-qec", "\"$KANAT\" login", "/dev/null"]);
    command
        .env_remove("KANAT_API_KEY")
        .env("KANAT", env!("CARGO_BIN_EXE_kanat"));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut screen = child.stdout.take().unwrap();
    let mut seen = Vec::new();
    let mut input = child.stdin.take().unwrap();
    // What is typed before the question would show: the terminal is silent from then on.
    while !text(&seen).contains("does not show): ") {
        let mut byte = [0];
        screen.read_exact(&mut byte).unwrap();
        seen.push(byte[0]);
    }
    input.write_all(format!("{KEY}\n").as_bytes()).unwrap();
    drop(input);
    screen.read_to_end(&mut seen).unwrap();
    assert!(child.wait().unwrap().success(), "{}", text(&seen));
    assert!(
        !text(&seen).contains(KEY) && text(&seen).contains("logged in"),
        "{}",
        text(&seen)
    );
    assert!(service.run(&["logout"]).starts_with("logged out: "));
    assert_eq!(service.run(&["logout"]), "nobody was logged in\n");
}

#[test]
fn login_tries_the_key_and_remembers_it() {
    let service = Service::start();
    let mut command = service.command(&["login"]);
    command
        .env_remove("KANAT_API_KEY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(format!("{KEY}\n").as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!text(&output.stdout).contains(KEY));
    let mut list = service.command(&["flow", "list"]);
    let output = list
        .env_remove("KANAT_API_KEY")
        .env_remove("KANAT_URL")
        .output()
        .unwrap();
    assert_eq!(text(&output.stdout), "none\n", "{}", text(&output.stderr));

    let (code, said) = service.fail(&["login", "--api-key", "kanat_ak_wrong"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("was not saved") && !said.contains("kanat_ak_wrong"),
        "{said}"
    );
}

#[test]
fn an_error_says_what_to_do_next() {
    let service = Service::start();
    let (code, said) = service.fail(&["flow", "show", "nowhere"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("\"nowhere\"") && said.contains("kanat flow list"),
        "{said}"
    );

    let (_, said) = service.fail(&["--api-key", "kanat_ak_wrong", "flow", "list"]);
    assert!(said.contains("kanat login"), "{said}");

    let (_, said) = service.fail(&["--api-key", "wrong", "login"]);
    assert!(said.contains("an API key begins with kanat_ak_"), "{said}");
    let mut without_key = service.command(&["flow", "list"]);
    let (_, said) =
        crate::service::failure(without_key.env_remove("KANAT_API_KEY").output().unwrap());
    assert!(
        said.contains("no API key is given: log in with `kanat login`"),
        "{said}"
    );
    let (code, said) = service.fail(&["logs", "--since", "foo"]);
    assert!(
        code == Some(2) && said.contains("`1h`") && said.contains("an instant such as"),
        "{said}"
    );
    let (_, said) = service.fail(&["api-key", "reset", "--data-dir", "data"]);
    assert!(said.contains("stop the service first"), "{said}");

    let (code, said) = service.fail(&["flow", "create", "missing.yaml"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("missing.yaml"), "{said}");

    let (code, said) = service.fail(&["--url", "http://127.0.0.1:9", "flow", "list"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("kanat up"), "{said}");

    let (code, _) = service.fail(&["--env", "nowhere", "flow", "list"]);
    assert_eq!(code, Some(1));
}
