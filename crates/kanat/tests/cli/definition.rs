//! Definitions of flows on the command line: where they come from, and how their faults show.

use std::io::Write;
use std::process::Stdio;

use crate::service::{Service, example, text};

#[test]
fn faults_of_a_definition_from_standard_input_have_positions() {
    let service = Service::start();
    let mut command = service.command(&["flow", "validate", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"flow: x\nsource:\n  trigger: webhok\n")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(
        said.starts_with("error: ") && said.contains("webhook"),
        "{said}"
    );
    assert!(
        said.contains("--> standard input:3:12") && said.contains("\n3 |   trigger: webhok\n"),
        "{said}"
    );
    assert!(said.contains("^^^^^^ source.trigger"), "{said}");
    assert!(
        text(&output.stderr).contains("error: standard input has "),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_definition_is_checked_without_a_service() {
    let folder = tempfile::TempDir::new().unwrap();
    let validate = |text: &str| {
        std::fs::write(folder.path().join("a.yaml"), text).unwrap();
        let mut command = crate::service::kanat();
        command
            .args(["flow", "validate", "a.yaml"])
            .env("HOME", folder.path())
            .env_remove("XDG_CONFIG_HOME");
        command.current_dir(folder.path()).output().unwrap()
    };
    let good = validate(&std::fs::read_to_string(example("flows/stock-count.yaml")).unwrap());
    assert_eq!(
        text(&good.stdout),
        "a.yaml is valid\n",
        "{}",
        text(&good.stderr)
    );
    assert!(
        text(&good.stderr).contains("are not checked: no API key"),
        "{}",
        text(&good.stderr)
    );
    let wrong = validate("flow: x\nsource:\n  trigger: webhok\n");
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        text(&wrong.stdout).contains("--> a.yaml:3:12"),
        "{}",
        text(&wrong.stdout)
    );
}

#[test]
fn a_folder_with_two_definitions_of_one_flow_is_not_valid() {
    let folder = tempfile::TempDir::new().unwrap();
    let good = std::fs::read_to_string(example("flows/stock-count.yaml")).unwrap();
    for name in ["a.yaml", "b.yml"] {
        std::fs::write(folder.path().join(name), &good).unwrap();
    }
    let mut command = crate::service::kanat();
    command
        .args(["flow", "validate", "."])
        .env("HOME", folder.path())
        .env_remove("XDG_CONFIG_HOME");
    let output = command.current_dir(folder.path()).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("./a.yaml and ./b.yml both define the flow \"stock-count\""),
        "{said}"
    );
}

#[test]
fn a_wrong_definition_is_shown_in_one_form_wherever_it_is_given() {
    let service = Service::start();
    let good = std::fs::read_to_string(example("flows/stock-count.yaml")).unwrap();
    let file = service.file("good.yaml", &good);
    service.run(&["flow", "create", &file]);
    service.file(
        "wrong.yaml",
        &good.replacen("trigger: manual", "trigger: manuel", 1),
    );
    for command in [
        &["flow", "create", "wrong.yaml"][..],
        &["flow", "update", "stock-count", "wrong.yaml"],
    ] {
        let (code, said) = service.fail(command);
        assert_eq!(code, Some(1), "{said}");
        assert!(
            said.contains("--> wrong.yaml:") && said.contains("^^^^^^"),
            "{said}"
        );
        assert!(
            said.contains("did you mean") && said.ends_with("error: wrong.yaml has 1 error\n"),
            "{said}"
        );
    }
    let (_, said) = service.fail(&["flow", "deploy", "stock-count"]);
    assert!(
        said.contains("--> flow stock-count:") && said.contains("connector instance"),
        "{said}"
    );
}

#[test]
fn definitions_of_a_folder_are_applied() {
    let service = Service::start();
    service.run(&[
        "connector",
        "create",
        "http",
        "erp",
        "--set",
        "base_url=http://127.0.0.1:9",
    ]);
    let good = std::fs::read_to_string(example("flows/stock-count.yaml")).unwrap();
    std::fs::create_dir(service.folder.path().join("flows")).unwrap();
    service.file("flows/a.yaml", &good);
    service.file(
        "flows/b.yml",
        &good.replacen("stock-count", "stock-again", 1),
    );
    std::fs::create_dir(service.folder.path().join("flows/stock")).unwrap();
    service.file(
        "flows/stock/c.yaml",
        &good.replacen("stock-count", "stock-deep", 1),
    );
    service.file("flows/notes.txt", "no definition");
    let applied = service.run(&["flow", "apply", "flows"]);
    assert_eq!(applied.lines().count(), 3, "{applied}");
    assert!(
        applied.ends_with("flow stock-deep is created (active, version 1)\n"),
        "{applied}"
    );
    assert!(
        applied.starts_with("flow stock-count is created (active, version 1)\n"),
        "{applied}"
    );
    service.file("flows/a.yaml", &format!("{good}# changed\n"));
    service.file("flows/b.yml", "flow: [");
    let (code, said) = service.fail(&["flow", "apply", "flows"]);
    assert!(
        code == Some(1) && said.contains("nothing was applied") && said.contains("flows/b.yml:1"),
        "{said}"
    );
    let applied = service.run(&["flow", "apply", "flows/a.yaml"]);
    assert_eq!(applied, "flow stock-count is updated (active, version 2)\n");
}
