//! `up` and `demo` as processes: what they print, what they refuse, how they end.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use tempfile::TempDir;

use crate::service::{KEY, Service, failure, kanat, log_of_a_start, text};

#[test]
fn the_demo_plays_its_story_and_ends_with_0() {
    let output = kanat().args(["demo", "--exit"]).output().unwrap();
    let story = text(&output.stdout);
    let complaints = text(&output.stderr);
    assert!(output.status.success(), "{story}\n{complaints}");
    for part in [
        "delivered after 3 attempts",
        "dead letter after 3 attempts",
        "9007199254740993",
        "16 orders posted",
    ] {
        assert!(story.contains(part), "{part} is not in\n{story}");
    }
    assert!(
        !story.contains('\u{1b}'),
        "colours where there is no terminal"
    );
}

#[test]
fn a_stop_does_not_wait_for_those_who_follow_the_messages() {
    let mut service = Service::start_with(&["--drain-seconds", "3600"]);
    let manual = service.file("manual.yaml", MANUAL);
    service.run(&["flow", "create", &manual]);
    service.run(&[
        "connector",
        "create",
        "http",
        "nowhere",
        "--set",
        "base_url=http://127.0.0.1:9",
    ]);
    service.run(&["flow", "deploy", "by-hand"]);
    let mut follower = Running(
        service
            .command(&["logs", "--follow", "by-hand"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    service.run(&["flow", "run", "by-hand"]);
    let mut line = String::new();
    BufReader::new(follower.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("msg_"), "{line}");
    assert_eq!(service.terminate(), Some(0));
}

/// A process that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A flow whose target does not answer, and is asked once.
const MANUAL: &str = "flow: by-hand
source:
  trigger: manual
target:
  connector: nowhere
  endpoint: /
  method: POST
on_error:
  retry: 0x fixed(1s)
";

#[test]
fn a_second_process_on_one_folder_is_refused() {
    let service = Service::start();
    let data = service.folder.path().join("data");
    let output = kanat()
        .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data)
        .output()
        .unwrap();
    let (code, said) = failure(output);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("another kanat process") && said.contains("--data-dir"),
        "{said}"
    );
}

#[test]
fn an_address_in_use_is_named_with_advice() {
    let service = Service::start();
    let address = service.url.trim_start_matches("http://");
    let folder = TempDir::new().unwrap();
    let (code, said) = failure(
        kanat()
            .args(["up", "--listen", address])
            .current_dir(folder.path())
            .output()
            .unwrap(),
    );
    assert_eq!(code, Some(2));
    assert!(
        said.contains(address) && said.contains("--listen"),
        "{said}"
    );
}

#[test]
fn bad_settings_are_named_all_at_once_and_exit_with_2() {
    let folder = TempDir::new().unwrap();
    let output = kanat()
        .args(["up", "--listen", "here", "--body-limit", "0"])
        .env("KANAT_EGRESS_ALLOW", "10.0.0.0/99")
        .env("KANAT_RETENTION_DAYS", "ten")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let (code, said) = failure(output);
    assert_eq!(code, Some(2));
    for setting in [
        "--listen: ",
        "--body-limit: ",
        "KANAT_EGRESS_ALLOW: ",
        "KANAT_RETENTION_DAYS: ",
    ] {
        assert!(said.contains(setting), "{said}");
    }
    assert!(
        std::fs::read_dir(folder.path()).unwrap().next().is_none(),
        "nothing was made"
    );
}

#[test]
fn what_is_shipped_and_planes_of_their_own_are_guarded_and_up_alone_on_loopback_is_not() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = TempDir::new().unwrap();
    let holds = |arguments: &[&str]| {
        let mut service = kanat();
        service
            .args(arguments)
            .arg("--print-config")
            .env("KANAT_DATABASE_URL", "postgres://db/kanat");
        let output = service.current_dir(folder.path()).output().unwrap();
        let printed = text(&output.stdout);
        printed
            .lines()
            .find(|line| line.starts_with("egress ="))
            .unwrap_or("")
            .to_owned()
    };
    for (command, file) in [
        ("up", "kanat"),
        ("control-plane", "control-plane"),
        ("data-plane", "data-plane"),
    ] {
        let shipped = root.join(format!("deploy/settings/{file}.toml"));
        assert!(
            std::fs::read_to_string(&shipped)
                .unwrap()
                .contains("egress = \"guarded\""),
            "{file}"
        );
        assert_eq!(
            holds(&[command, "--config", shipped.to_str().unwrap()]),
            "egress = \"guarded\"",
            "{file}"
        );
    }
    let control = ["control-plane", "--listen", "127.0.0.1:0"];
    let data = [
        "data-plane",
        "--listen",
        "127.0.0.1:0",
        "--control-plane",
        "http://127.0.0.1:1",
    ];
    for plane in [&control[..], &data[..]] {
        assert_eq!(holds(plane), "egress = \"guarded\"");
        assert_eq!(
            holds(&[plane, &["--egress", "local"]].concat()),
            "egress = \"local\""
        );
    }
    assert_eq!(holds(&["up"]), "egress = \"local\"");
    assert_eq!(
        holds(&["up", "--public-url", "http://127.0.0.1:8080"]),
        "egress = \"guarded\""
    );
}

#[test]
fn a_misspelt_variable_ends_the_start_and_is_named_with_all_other_faults() {
    let folder = TempDir::new().unwrap();
    for command in ["up", "control-plane", "data-plane"] {
        let mut service = kanat();
        service
            .args([command, "--listen", "here"])
            .env("KANAT_DATA_DRI", "elsewhere");
        let (code, stderr) = failure(service.current_dir(folder.path()).output().unwrap());
        assert_eq!(code, Some(2), "{stderr}");
        let slip = "there is no variable KANAT_DATA_DRI; did you mean KANAT_DATA_DIR?";
        assert!(stderr.contains(slip), "{stderr}");
        assert!(stderr.contains("--listen: \"here\""), "{stderr}");
    }
    assert!(
        std::fs::read_dir(folder.path()).unwrap().next().is_none(),
        "nothing was made"
    );
}

#[test]
fn an_unknown_variable_is_warned_of_and_those_of_platforms_and_clients_are_not() {
    let folder = TempDir::new().unwrap();
    let mut up = kanat();
    up.args(["up", "--listen", "127.0.0.1:0"])
        .env("KANAT_IMAGE_TAG", "latest")
        .env("KANAT_SERVICE_HOST", "10.0.0.7")
        .env("KANAT_PORT", "tcp://10.0.0.7:8080")
        .env("KANAT_PORT_8080_TCP_ADDR", "10.0.0.7")
        .env("KANAT_URL", "http://127.0.0.1:8080")
        .env("KANAT_API_KEY", KEY)
        .env("KANAT_ENV", "staging");
    let log = log_of_a_start(up, &folder);
    assert!(log.contains("the variable KANAT_IMAGE_TAG is set"), "{log}");
    assert_eq!(log.matches("the variable KANAT_").count(), 1, "{log}");
}

#[test]
fn client_commands_take_no_notice_of_variables_that_are_not_theirs() {
    let mut version = kanat();
    version
        .arg("version")
        .env("KANAT_LISEN", "x")
        .env("KANAT_FOO", "x")
        .env("KANAT_ENVIRONMENTS", "x");
    let output = version.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_slip_of_a_variable_of_client_commands_is_a_fault() {
    for (name, meant) in [
        ("KANAT_ENVIRONMENT", "KANAT_ENV"),
        ("KANAT_UR", "KANAT_URL"),
        ("KANAT_API_KEI", "KANAT_API_KEY"),
    ] {
        let mut list = kanat();
        list.args(["flow", "list"]).env(name, "x");
        let (code, said) = failure(list.output().unwrap());
        assert_eq!(code, Some(2));
        assert!(
            said.contains(&format!(
                "there is no variable {name}; did you mean {meant}?"
            )),
            "{said}"
        );
    }
}

#[test]
fn files_of_tls_that_cannot_be_read_are_named_by_their_settings() {
    let folder = TempDir::new().unwrap();
    let mut up = kanat();
    up.args([
        "up",
        "--listen",
        "127.0.0.1:0",
        "--tls-cert",
        "none.pem",
        "--tls-key",
        "neither.pem",
    ]);
    let (code, said) = failure(up.current_dir(folder.path()).output().unwrap());
    assert_eq!(code, Some(2));
    assert!(
        said.contains("tls_cert: cannot read none.pem: ")
            && said.contains("tls_key: cannot read neither.pem"),
        "{said}"
    );
}

#[test]
fn a_bad_key_is_named_and_not_shown() {
    let folder = TempDir::new().unwrap();
    let repeated = "42".repeat(32);
    for (variable, value) in [
        ("KANAT_MASTER_KEY", "not-a-key-at-all"),
        ("KANAT_MASTER_KEY", repeated.as_str()),
        ("KANAT_BOOTSTRAP_API_KEY", "not-a-key-at-all"),
        ("KANAT_BOOTSTRAP_API_KEY", "kanat_ak_0123456789abcdef"),
        (
            "KANAT_BOOTSTRAP_API_KEY",
            "kanat_ak_0123456789abcdef0123456789abcd$",
        ),
        (
            "KANAT_SMTP_URL",
            "smtp://kanat:hunter2@mail.example.com/path",
        ),
    ] {
        let mut up = kanat();
        up.args(["up", "--listen", "127.0.0.1:0"])
            .env(variable, value)
            .current_dir(folder.path());
        let (code, stderr) = failure(up.output().unwrap());
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(variable), "{stderr}");
        assert!(!stderr.contains(value), "{stderr}");
    }
    assert!(
        std::fs::read_dir(folder.path()).unwrap().next().is_none(),
        "nothing was made"
    );
}

#[test]
fn the_settings_that_hold_can_be_shown_without_their_secrets() {
    let folder = TempDir::new().unwrap();
    std::fs::write(
        folder.path().join("kanat.toml"),
        "lease_seconds = 7\nbody_limit = 5000\n",
    )
    .unwrap();
    let output = kanat()
        .args(["up", "--print-config", "--body-limit", "6000"])
        .env("KANAT_BOOTSTRAP_API_KEY", KEY)
        .env("KANAT_SMTP_URL", "smtp://kanat:hunter2@mail.example.com")
        .env("KANAT_SMTP_FROM", "Kanat <kanat@example.com>")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let printed = text(&output.stdout);
    assert!(output.status.success());
    assert!(printed.contains("smtp_url = \"********\""), "{printed}");
    assert!(
        printed.contains("smtp_from = \"Kanat <kanat@example.com>\""),
        "{printed}"
    );
    assert!(!printed.contains("hunter2"), "{printed}");
    assert!(
        printed.contains("lease_seconds = 7") && printed.contains("body_limit = 6000"),
        "{printed}"
    );
    assert!(
        printed.contains("bootstrap_api_key = \"********\"") && !printed.contains(KEY),
        "{printed}"
    );
}

#[test]
fn a_refused_call_is_logged_at_debug_with_the_id_of_its_request() {
    let folder = TempDir::new().unwrap();
    let mut up = kanat();
    up.args([
        "up",
        "--listen",
        "127.0.0.1:0",
        "--log",
        "info,kanat_gateway=debug",
    ])
    .current_dir(folder.path());
    let mut up = Running(
        up.stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut line = String::new();
    BufReader::new(up.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let url = line.trim_end().rsplit_once(' ').unwrap().1.to_owned();
    let mut list = kanat();
    list.args(["--url", &url, "--api-key", "kanat_ak_wrong", "flow", "list"])
        .env("XDG_CONFIG_HOME", folder.path());
    failure(list.output().unwrap());
    up.0.kill().unwrap();
    let mut log = String::new();
    up.0.stderr
        .take()
        .unwrap()
        .read_to_string(&mut log)
        .unwrap();
    let refused = log
        .lines()
        .find(|line| line.contains("a call was refused"))
        .unwrap_or_else(|| panic!("{log}"));
    assert!(
        refused.contains("req_") && refused.contains("401"),
        "{refused}"
    );
}

#[test]
fn the_first_start_shows_the_owner_s_key_once() {
    let folder = TempDir::new().unwrap();
    let start = || {
        let mut up = kanat();
        up.args(["up", "--listen", "127.0.0.1:0"]);
        log_of_a_start(up, &folder)
    };
    assert_eq!(start().matches("shown this once: kanat_ak_").count(), 1);
    assert!(!start().contains("kanat_ak_"));
}

#[test]
fn the_journal_does_not_get_the_owner_s_key() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let folder = TempDir::new().unwrap();
    let journal = std::fs::File::create(folder.path().join("journal")).unwrap();
    let stream = journal
        .metadata()
        .map(|stream| format!("{}:{}", stream.dev(), stream.ino()))
        .unwrap();
    let mut up = kanat();
    up.args(["up", "--listen", "127.0.0.1:0"])
        .env("JOURNAL_STREAM", &stream)
        .current_dir(folder.path());
    let mut up = Running(up.stdout(Stdio::piped()).stderr(journal).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(up.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let url = line.trim_end().rsplit_once(' ').unwrap().1.to_owned();
    let said = std::fs::read_to_string(folder.path().join("journal")).unwrap();
    assert!(
        said.contains("kanat-data/owner-key") && !said.contains("kanat_ak_"),
        "{said}"
    );
    let file = folder.path().join("kanat-data/owner-key");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let key = std::fs::read_to_string(file).unwrap();
    let mut list = kanat();
    list.args(["--url", &url, "--api-key", key.trim(), "flow", "list"])
        .env("XDG_CONFIG_HOME", folder.path());
    let listed = list.output().unwrap();
    assert!(listed.status.success(), "{}", text(&listed.stderr));
}

#[test]
fn the_stream_of_another_process_to_the_journal_is_not_taken_for_its_own() {
    let folder = TempDir::new().unwrap();
    let mut up = kanat();
    up.args(["up", "--listen", "127.0.0.1:0"])
        .env("JOURNAL_STREAM", "8:1");
    assert_eq!(
        log_of_a_start(up, &folder)
            .matches("shown this once: kanat_ak_")
            .count(),
        1
    );
}

#[test]
fn an_address_that_is_open_to_other_machines_without_tls_is_warned_of() {
    const WARNING: &str = "is open to other machines without TLS";
    let log = |listen: &str| {
        let folder = TempDir::new().unwrap();
        let mut up = kanat();
        up.args([
            "up",
            "--public-url",
            "https://hooks.example.com",
            "--listen",
            listen,
        ]);
        log_of_a_start(up, &folder)
    };
    let open = log("0.0.0.0:0");
    assert_eq!(open.matches(WARNING).count(), 1, "{open}");
    let closed = log("127.0.0.1:0");
    assert!(!closed.contains(WARNING), "{closed}");
}

#[test]
fn folders_and_keys_that_are_open_to_others_are_closed_at_the_start() {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::new().unwrap();
    let up = || {
        let mut up = kanat();
        up.args(["up", "--listen", "127.0.0.1:0"]);
        up
    };
    log_of_a_start(up(), &folder);
    let data = folder.path().join("kanat-data");
    let plans = data.join("plans");
    let of_an_environment = std::fs::read_dir(&plans)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let of_an_environment: Vec<_> = of_an_environment.filter(|path| path.is_dir()).collect();
    assert!(!of_an_environment.is_empty());
    let mut folders = vec![data.clone(), plans];
    folders.extend(of_an_environment);
    let key = data.join("master.key");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert!(folders.iter().all(|path| mode(path) == 0o700));
    let set =
        |path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    folders.iter().for_each(|path| set(path, 0o755));
    set(&key, 0o644);
    let log = log_of_a_start(up(), &folder);
    assert!(folders.iter().all(|path| mode(path) == 0o700), "{log}");
    assert_eq!(mode(&key), 0o600);
    assert_eq!(
        log.matches("was open to others").count(),
        folders.len() + 1,
        "{log}"
    );
}
