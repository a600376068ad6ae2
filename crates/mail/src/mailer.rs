//! The transfer of mails: one connection for each, and one deadline for all of its steps.

use std::fmt;
use std::time::Duration;

use lettre::Message;
use lettre::transport::smtp::authentication::DEFAULT_MECHANISMS;
use lettre::transport::smtp::client::{
    AsyncSmtpConnection, Certificate, TlsParameters, TlsParametersBuilder,
};
use lettre::transport::smtp::extension::ClientId;
use tokio::time::timeout;

use crate::server::Encryption;
use crate::{Mail, MailError, Sender, SmtpServer};

/// Time after which a mail that the server has not accepted counts as not sent.
pub const TRANSFER_TIMEOUT: Duration = Duration::from_secs(5);
/// Time after which the next address of the server is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Time that the server has for the answer to the end of the connection.
const GOODBYE_TIMEOUT: Duration = Duration::from_millis(500);

/// Client of the mail server of the settings.
#[derive(Clone)]
pub struct Mailer {
    server: SmtpServer,
    sender: Sender,
    tls: TlsParameters,
    timeout: Duration,
}

impl Mailer {
    /// Makes a client. No connection is opened.
    ///
    /// # Errors
    /// [`MailError::TlsSetup`] without certificates of authorities on this machine.
    pub fn new(server: SmtpServer, sender: Sender) -> Result<Self, MailError> {
        Self::trusting(server, sender, None)
    }

    fn trusting(
        server: SmtpServer,
        sender: Sender,
        authority: Option<Certificate>,
    ) -> Result<Self, MailError> {
        let tls = tls(&server, authority)?;
        Ok(Self {
            server,
            sender,
            tls,
            timeout: TRANSFER_TIMEOUT,
        })
    }

    /// Server that mails are sent to.
    pub fn server(&self) -> &SmtpServer {
        &self.server
    }

    /// Sends a mail, and returns when the server has accepted it.
    ///
    /// # Errors
    /// The reason why the mail is not sent. After [`TRANSFER_TIMEOUT`] it is
    /// [`MailError::Timeout`].
    pub async fn send(&self, mail: Mail) -> Result<(), MailError> {
        let message = mail.compose(&self.sender)?;
        let sent = timeout(self.timeout, self.transfer(&message)).await;
        let mut connection = sent.unwrap_or(Err(MailError::Timeout))?;
        // The mail is accepted: whether the server also answers the goodbye does not matter.
        let _ = timeout(GOODBYE_TIMEOUT, connection.abort()).await;
        Ok(())
    }

    async fn transfer(&self, message: &Message) -> Result<AsyncSmtpConnection, MailError> {
        let mut connection = self.connect().await?;
        if let Some(credentials) = &self.server.credentials {
            let login = connection.auth(DEFAULT_MECHANISMS, credentials).await;
            login.map_err(|error| MailError::of_login(&error))?;
        }
        let bytes = message.formatted();
        let sent = connection.send(message.envelope(), &bytes).await;
        sent.map_err(|error| MailError::of_transfer(&error))?;
        Ok(connection)
    }

    /// Opens a connection that is encrypted as the settings ask.
    async fn connect(&self) -> Result<AsyncSmtpConnection, MailError> {
        let name = ClientId::default();
        let address = (self.server.host_name(), self.server.port);
        let from_start = (self.server.encryption == Encryption::Implicit).then(|| self.tls.clone());
        let timeout = Some(CONNECT_TIMEOUT);
        let connection =
            AsyncSmtpConnection::connect_tokio1(address, timeout, &name, from_start, None);
        let mut connection = connection
            .await
            .map_err(|error| MailError::of_connection(&error))?;
        let wants_start_tls = match self.server.encryption {
            Encryption::Implicit => false,
            Encryption::Opportunistic => connection.can_starttls(),
            Encryption::Required if connection.can_starttls() => true,
            Encryption::Required => return Err(MailError::NoTls),
        };
        if wants_start_tls {
            let upgrade = connection.starttls(self.tls.clone(), &name).await;
            upgrade.map_err(|error| MailError::of_connection(&error))?;
        }
        Ok(connection)
    }
}

impl fmt::Debug for Mailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailer")
            .field("server", &self.server)
            .field("sender", &self.sender)
            .finish_non_exhaustive()
    }
}

/// Chooses the certificates that are accepted: those of the machine's authorities where TLS is
/// required. Opportunistic TLS (RFC 7435) accepts all, because it would fall back to clear text
/// where an attacker hides STARTTLS, and because servers that offer it often sign their own.
fn tls(server: &SmtpServer, authority: Option<Certificate>) -> Result<TlsParameters, MailError> {
    let mut tls = TlsParametersBuilder::new(server.host_name())
        .dangerous_accept_invalid_certs(server.encryption == Encryption::Opportunistic);
    if let Some(authority) = authority {
        tls = tls.add_root_certificate(authority);
    }
    tls.build()
        .map_err(|error| MailError::TlsSetup(error.to_string()))
}

#[cfg(test)]
mod tests;
