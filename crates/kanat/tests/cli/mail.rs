//! The settings of mail.

use tempfile::TempDir;

use crate::service::{failure, kanat, log_of_a_start};

#[test]
fn mail_needs_a_server_and_a_sender() {
    let folder = TempDir::new().unwrap();
    for (variable, value) in [
        ("KANAT_SMTP_URL", "smtps://kanat:hunter2@mail.example.com"),
        ("KANAT_SMTP_FROM", "Kanat <kanat@example.com>"),
    ] {
        let mut up = kanat();
        up.args(["up", "--listen", "127.0.0.1:0"])
            .env(variable, value)
            .current_dir(folder.path());
        let (code, stderr) = failure(up.output().unwrap());
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains("KANAT_SMTP_URL"), "{stderr}");
        assert!(stderr.contains("KANAT_SMTP_FROM"), "{stderr}");
        assert!(!stderr.contains("hunter2"), "{stderr}");
    }
}

#[test]
fn mail_that_may_leave_the_machine_unencrypted_is_warned_of() {
    const WARNING: &str = "may be sent unencrypted";
    let log = |url: &str| {
        let folder = TempDir::new().unwrap();
        let mut up = kanat();
        up.args(["up", "--listen", "127.0.0.1:0"])
            .env("KANAT_SMTP_URL", url)
            .env("KANAT_SMTP_FROM", "kanat@example.com");
        log_of_a_start(up, &folder)
    };
    let open = log("smtp://kanat:hunter2@mail.example.com");
    assert_eq!(open.matches(WARNING).count(), 1, "{open}");
    assert!(!open.contains("hunter2"), "{open}");
    let closed = log("smtp://127.0.0.1:1025");
    assert!(!closed.contains(WARNING), "{closed}");
}
