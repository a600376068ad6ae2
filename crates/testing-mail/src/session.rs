//! One connection: commands and their replies.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::ReceivedMail;
use crate::certificate::Identity;
use crate::mail::{decoded, header, parts};
use crate::server::{Options, Tls};

/// A connection, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub struct Session {
    stream: Box<dyn Stream>,
    is_encrypted: bool,
    options: Options,
    identity: Identity,
    mails: Arc<Mutex<Vec<ReceivedMail>>>,
    from: String,
    to: Vec<String>,
    login: Option<(String, String)>,
}

impl Session {
    /// Begins a connection, encrypted where the options say from the first byte.
    pub async fn open(
        stream: TcpStream,
        options: Options,
        identity: Identity,
        mails: Arc<Mutex<Vec<ReceivedMail>>>,
    ) -> io::Result<Self> {
        let is_encrypted = options.tls == Tls::Implicit;
        let stream: Box<dyn Stream> = match is_encrypted {
            true => Box::new(identity.acceptor.accept(stream).await?),
            false => Box::new(stream),
        };
        Ok(Self {
            stream,
            is_encrypted,
            options,
            identity,
            mails,
            from: String::new(),
            to: Vec::new(),
            login: None,
        })
    }

    /// Answers commands until the client ends.
    pub async fn run(mut self) -> io::Result<()> {
        self.reply("220 mail.test ESMTP").await?;
        loop {
            let line = self.line().await?;
            let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
            match verb.to_uppercase().as_str() {
                "EHLO" => self.extensions().await?,
                "STARTTLS" => self = self.encrypt().await?,
                "AUTH" => self.log_in(rest).await?,
                "MAIL" => self.begin(rest).await?,
                "RCPT" if self.options.refuses => self.reply("550 5.1.1 no such user").await?,
                "RCPT" => {
                    self.to.push(address(rest));
                    self.reply("250 ok").await?;
                }
                "DATA" => {
                    self.data().await?;
                    if self.options.ends_silent {
                        std::future::pending::<()>().await;
                    }
                }
                "QUIT" => return self.reply("221 bye").await,
                _ => self.reply("500 unknown command").await?,
            }
        }
    }

    async fn extensions(&mut self) -> io::Result<()> {
        self.reply("250-mail.test").await?;
        if self.options.tls == Tls::Offered && !self.is_encrypted {
            self.reply("250-STARTTLS").await?;
        }
        if self.options.login.is_some() {
            self.reply("250-AUTH PLAIN").await?;
        }
        self.reply("250 8BITMIME").await
    }

    async fn encrypt(mut self) -> io::Result<Self> {
        self.reply("220 go on").await?;
        let stream = self.identity.acceptor.accept(self.stream).await?;
        self.stream = Box::new(stream);
        self.is_encrypted = true;
        Ok(self)
    }

    async fn log_in(&mut self, rest: &str) -> io::Result<()> {
        let encoded = rest.strip_prefix("PLAIN ").unwrap_or_default();
        let plain = STANDARD.decode(encoded).unwrap_or_default();
        let plain = String::from_utf8_lossy(&plain);
        let mut fields = plain.split('\0').skip(1).map(str::to_owned);
        let login = fields.next().zip(fields.next());
        if login.is_none() || login != self.options.login {
            return self.reply(&format!("535 5.7.8 not {plain:?}")).await;
        }
        self.login = login;
        self.reply("235 welcome").await
    }

    async fn begin(&mut self, rest: &str) -> io::Result<()> {
        if self.options.login.is_some() && self.login.is_none() {
            return self.reply("530 5.7.0 log in first").await;
        }
        self.from = address(rest);
        self.to.clear();
        self.reply("250 ok").await
    }

    async fn data(&mut self) -> io::Result<()> {
        self.reply("354 end with a dot").await?;
        let mut raw = String::new();
        loop {
            let line = self.line().await?;
            if line == "." {
                break;
            }
            raw.push_str(line.strip_prefix('.').unwrap_or(&line));
            raw.push_str("\r\n");
        }
        let mail = ReceivedMail {
            from: self.from.clone(),
            to: self.to.clone(),
            subject: decoded(&header(&raw, "Subject")),
            text: parts(&raw).1.replace("\r\n", "\n"),
            raw,
            is_encrypted: self.is_encrypted,
            login: self.login.clone(),
        };
        let mails = self.mails.lock();
        mails.unwrap_or_else(PoisonError::into_inner).push(mail);
        self.reply("250 accepted").await
    }

    async fn reply(&mut self, line: &str) -> io::Result<()> {
        self.stream
            .write_all(format!("{line}\r\n").as_bytes())
            .await?;
        self.stream.flush().await
    }

    /// Reads a line, byte by byte: what follows it may be encrypted.
    async fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        loop {
            match self.stream.read_u8().await? {
                b'\n' => break,
                byte => line.push(byte),
            }
        }
        if line.pop() != Some(b'\r') {
            return Err(io::Error::other("a line of SMTP ends with CR LF"));
        }
        String::from_utf8(line).map_err(io::Error::other)
    }
}

/// Returns the address of `FROM:<a@example.com> BODY=8BITMIME`.
fn address(rest: &str) -> String {
    let inner = rest
        .split_once('<')
        .and_then(|(_, rest)| rest.split_once('>'));
    inner.map_or_else(String::new, |(address, _)| address.to_owned())
}
