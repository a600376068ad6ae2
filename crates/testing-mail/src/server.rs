//! The running server and its behaviour.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::ReceivedMail;
use crate::certificate::{Identity, identity};
use crate::session::Session;

/// Behaviour of a server.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub tls: Tls,
    /// User and password without which no mail is accepted.
    pub login: Option<(String, String)>,
    /// Whether recipients are refused.
    pub refuses: bool,
    /// Whether connections are opened and nothing is sent.
    pub is_silent: bool,
    /// Whether an accepted mail is the last thing that the server answers.
    pub ends_silent: bool,
}

/// How connections are encrypted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tls {
    #[default]
    None,
    /// STARTTLS is offered.
    Offered,
    /// From the first byte.
    Implicit,
}

/// A running server. It stops when dropped.
pub struct MailServer {
    pub address: SocketAddr,
    mails: Arc<Mutex<Vec<ReceivedMail>>>,
    options: Options,
    identity: Identity,
    _tasks: JoinSet<()>,
}

impl MailServer {
    /// Starts a server that accepts every mail, without TLS.
    pub async fn start() -> Self {
        Self::with(Options::default()).await
    }

    /// Starts a server that refuses every recipient with 550.
    pub async fn refusing() -> Self {
        Self::with(Options {
            refuses: true,
            ..Options::default()
        })
        .await
    }

    /// Starts a server that opens connections and never sends a byte.
    pub async fn silent() -> Self {
        Self::with(Options {
            is_silent: true,
            ..Options::default()
        })
        .await
    }

    /// Starts a server.
    pub async fn with(options: Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let mails = Arc::default();
        let identity = identity();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(
            listener,
            options.clone(),
            identity.clone(),
            Arc::clone(&mails),
        ));
        Self {
            address,
            mails,
            options,
            identity,
            _tasks: tasks,
        }
    }

    /// URL for `KANAT_SMTP_URL`. It has user and password if the server asks for them.
    pub fn url(&self) -> String {
        let scheme = match self.options.tls {
            Tls::None | Tls::Offered => "smtp",
            Tls::Implicit => "smtps",
        };
        let login = self.options.login.as_ref();
        let login = login.map_or_else(String::new, |(user, password)| {
            format!("{user}:{password}@")
        });
        format!("{scheme}://{login}{}", self.address)
    }

    /// Certificate that the server shows where it encrypts, in PEM. It is its own authority.
    pub fn certificate_pem(&self) -> &str {
        &self.identity.certificate_pem
    }

    /// Returns the mails that were accepted, in order of arrival.
    pub fn mails(&self) -> Vec<ReceivedMail> {
        let mails = self.mails.lock();
        mails.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn accept(
    listener: TcpListener,
    options: Options,
    identity: Identity,
    mails: Arc<Mutex<Vec<ReceivedMail>>>,
) {
    let mut sessions = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        sessions.spawn(serve(
            stream,
            options.clone(),
            identity.clone(),
            Arc::clone(&mails),
        ));
    }
}

async fn serve(
    stream: TcpStream,
    options: Options,
    identity: Identity,
    mails: Arc<Mutex<Vec<ReceivedMail>>>,
) {
    if options.is_silent {
        // Ends with the server, as its task does.
        std::future::pending::<()>().await;
    }
    let session = Session::open(stream, options, identity, mails).await;
    if let Ok(session) = session {
        // A client that goes away in the middle leaves what it has sent.
        let _ = session.run().await;
    }
}
