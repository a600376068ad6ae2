//! Errors of the configuration store, and the form in which callers see them.

/// Result of a statement, or of a transaction.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something could not be read from or written to the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that is unique in its environment is in use already.
    #[error("{kind} {name:?} already exists")]
    Taken { kind: &'static str, name: String },
    /// The row was changed by someone else since it was read.
    #[error("{kind} {id:?} was changed meanwhile")]
    Changed { kind: &'static str, id: String },
    #[error(
        "the database has schema {found}, and this build knows schemas up to {known} only: use a \
         newer build"
    )]
    Newer { found: i64, known: i64 },
    #[error("{0:?} is no database address: give sqlite:<path> or postgres://...")]
    Address(String),
    #[error("{0}")]
    Addresses(#[from] kanat_database::AddressError),
    #[error("column {column:?} holds {value:?}, which means nothing to this build")]
    Corrupt { column: String, value: String },
    /// A search text is longer than one may be.
    #[error("{0}")]
    Search(kanat_model::Error),
    #[error("{0}")]
    Database(#[from] sqlx::Error),
}

impl Error {
    /// Returns whether a row has a value that no build has written.
    pub fn is_of_row(&self) -> bool {
        matches!(
            self,
            Self::Corrupt { .. }
                | Self::Database(sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_))
        )
    }

    /// Names a unique violation; every other error stays as it is.
    pub(crate) fn taken(kind: &'static str, name: &str) -> impl FnOnce(Self) -> Self {
        move |error| match &error {
            Self::Database(sqlx::Error::Database(cause)) if cause.is_unique_violation() => {
                Self::Taken {
                    kind,
                    name: name.to_owned(),
                }
            }
            _ => error,
        }
    }

    /// Errors when an update of a row at its revision wrote none.
    pub(crate) fn check_changed(
        updated: u64,
        kind: &'static str,
        id: impl AsRef<str>,
    ) -> Result<(), Self> {
        if updated > 0 {
            return Ok(());
        }
        Err(Self::Changed {
            kind,
            id: id.as_ref().to_owned(),
        })
    }

    pub(crate) fn corrupt(column: &str, value: String) -> Self {
        Self::Corrupt {
            column: column.to_owned(),
            value,
        }
    }

    /// Returns whether a later attempt may succeed.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Database(
                sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed,
            ) => true,
            // SQLite: BUSY, LOCKED, IOERR, FULL, CANTOPEN, with their extended codes in the upper
            // bytes. PostgreSQL: serialization failures, deadlocks, connection trouble, no
            // resources, shutdown, a standby.
            Self::Database(sqlx::Error::Database(cause)) => cause.code().is_some_and(|code| {
                code.parse::<u32>()
                    .is_ok_and(|code| matches!(code & 0xff, 5 | 6 | 10 | 13 | 14) && code < 10_000)
                    || ["40", "08", "53", "57", "25006"]
                        .iter()
                        .any(|class| code.len() == 5 && code.starts_with(class))
            }),
            Self::Taken { .. }
            | Self::Changed { .. }
            | Self::Newer { .. }
            | Self::Address(_)
            | Self::Addresses(_)
            | Self::Corrupt { .. }
            | Self::Search(_)
            | Self::Database(_) => false,
        }
    }
}

/// The caller learns of names and lost updates; the cause of everything else goes to the log.
impl From<Error> for kanat_model::Error {
    fn from(error: Error) -> Self {
        match &error {
            Error::Search(refusal) => refusal.clone(),
            Error::Taken { kind, name } => Self::already_exists(kind, name),
            Error::Changed { .. } => Self::new(kanat_model::Code::Aborted, error.to_string()),
            Error::Newer { .. }
            | Error::Address(_)
            | Error::Addresses(_)
            | Error::Corrupt { .. }
            | Error::Database(_) => {
                tracing::error!(error = %error, "the configuration store failed");
                if error.may_pass() {
                    Self::unavailable("the configuration store is not available")
                } else {
                    Self::internal()
                }
            }
        }
    }
}
