//! The mail server of the settings, at the start.

use kanat_mail::Mailer;

/// Warns that mail may be sent unencrypted, if it may.
pub fn announce(mailer: Option<&Mailer>) {
    let server = mailer.map(Mailer::server);
    if let Some(server) = server.filter(|server| server.may_be_unencrypted()) {
        tracing::warn!(
            smtp.server = %server,
            "mail, and the password of the mail server, may be sent unencrypted: add ?tls=required \
             to --smtp-url, or use smtps://",
        );
    }
}
