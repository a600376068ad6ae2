//! A proxy for a server that can fall silent: it forwards no more bytes, and neither end sees the
//! connection close. So it is when a database moves to another machine, or a firewall drops a
//! connection.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use url::Url;

/// Asks nothing but whether the server is there.
const SYNC: &[u8] = b"S\0\0\0\x04";

/// A way to the server of an address; it ends with its connections.
pub struct Line {
    url: String,
    own: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Number of connections, and the first one that is not silent.
    opened: AtomicU64,
    first_alive: AtomicU64,
    /// Request that makes all connections fall silent.
    trigger: Mutex<Option<Trigger>>,
    ended: AtomicBool,
}

/// Recognizes a request in the bytes of a client.
type Trigger = Box<dyn FnMut(&[u8]) -> bool + Send>;

impl Line {
    /// To the server that `url` names.
    ///
    /// # Panics
    /// When `url` is no address of a server, or there is no free port.
    pub fn to(url: &str) -> Self {
        let mut url = Url::parse(url).expect("an address");
        let server = format!(
            "{}:{}",
            url.host_str().expect("an address with a host"),
            url.port().unwrap_or(5_432)
        );
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let own = listener.local_addr().expect("it is bound");
        url.set_host(Some("127.0.0.1"))
            .expect("a host may be an address");
        url.set_port(Some(own.port()))
            .expect("a server's address has a port");
        let state = Arc::new(State::default());
        let line = Self {
            url: url.into(),
            own: own.to_string(),
            state: Arc::clone(&state),
        };
        std::thread::spawn(move || state.accept(&listener, &server));
        line
    }

    /// The address of this end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// As soon as a client sends `text`, that and all other connections fall silent; new ones work.
    pub fn fall_silent_at(&self, text: &str) {
        let text = text.to_owned();
        self.fall_silent_when(move |asked| contains(asked, &text));
    }

    /// As soon as a connection that committed is asked for the second time whether it is still
    /// there, which is the driver's own question when it takes the connection back, all connections
    /// fall silent; new ones work.
    pub fn drop_answers(&self) {
        let mut committed = false;
        let mut asked = 0;
        self.fall_silent_when(move |sent| {
            committed |= contains(sent, "COMMIT");
            asked += u32::from(committed && sent == SYNC);
            asked == 2
        });
    }

    fn fall_silent_when(&self, is_it: impl FnMut(&[u8]) -> bool + Send + 'static) {
        *self.state.trigger() = Some(Box::new(is_it));
    }

    /// Returns whether the request has not come yet.
    pub fn waits(&self) -> bool {
        self.state.trigger().is_some()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        // Whoever accepts looks up.
        let _ = TcpStream::connect(&self.own);
    }
}

impl State {
    fn trigger(&self) -> std::sync::MutexGuard<'_, Option<Trigger>> {
        self.trigger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: Arc<Self>, listener: &TcpListener, server: &str) {
        while let Ok((client, _)) = listener.accept() {
            if self.ended.load(Ordering::SeqCst) {
                return;
            }
            let Ok(server) = TcpStream::connect(server) else {
                continue;
            };
            let number = self.opened.fetch_add(1, Ordering::SeqCst);
            for (from, to, asks) in [(&client, &server, true), (&server, &client, false)] {
                if let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) {
                    let state = Arc::clone(&self);
                    std::thread::spawn(move || state.carry(number, from, to, asks));
                }
            }
        }
    }

    /// Until one end closes, which closes the other.
    fn carry(&self, number: u64, mut from: TcpStream, mut to: TcpStream, asks: bool) {
        let mut bytes = [0; 16 * 1024];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            if asks {
                self.hear(&bytes[..read]);
            }
            let is_silent = number < self.first_alive.load(Ordering::SeqCst);
            if !is_silent && to.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }

    fn hear(&self, asked: &[u8]) {
        let mut trigger = self.trigger();
        if trigger.as_mut().is_some_and(|is_it| is_it(asked)) {
            self.first_alive
                .store(self.opened.load(Ordering::SeqCst), Ordering::SeqCst);
            *trigger = None;
        }
    }
}

fn contains(asked: &[u8], text: &str) -> bool {
    asked
        .windows(text.len())
        .any(|bytes| bytes == text.as_bytes())
}
