//! The statements of the writer, which stay prepared.

use std::cell::{Cell, RefCell};

use rusqlite::{Connection, Params, Statement};

use super::transaction::Commit;

/// Found by where their texts stand in the program: a cache by text hashes hundreds of bytes for
/// each of them.
pub(super) struct Statements<'c> {
    conn: &'c Connection,
    prepared: RefCell<Vec<(&'static str, Statement<'c>)>>,
    /// What the connection does at present, once it was told.
    commit: Cell<Option<Commit>>,
}

impl<'c> Statements<'c> {
    pub fn new(conn: &'c Connection) -> Self {
        Self {
            conn,
            prepared: RefCell::default(),
            commit: Cell::default(),
        }
    }

    pub fn conn(&self) -> &'c Connection {
        self.conn
    }

    /// What the next commit is to be worth.
    pub fn sync(&self, commit: Commit) -> rusqlite::Result<()> {
        if self.commit.get() == Some(commit) {
            return Ok(());
        }
        let synchronous = match commit {
            Commit::OnDisk => "full",
            Commit::Soon => "normal",
        };
        self.conn.pragma_update(None, "synchronous", synchronous)?;
        self.commit.set(Some(commit));
        Ok(())
    }

    /// Reads several times in one transaction: each for itself would lock and unlock the file.
    pub fn reading<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.execute("BEGIN", ())?;
        let result = read(self.conn);
        let ended = self
            .execute("COMMIT", ())
            .or_else(|_| self.execute("ROLLBACK", ()));
        ended.and(result)
    }

    /// Runs a statement; says how many rows changed.
    pub fn execute(&self, text: &'static str, values: impl Params) -> rusqlite::Result<usize> {
        let mut prepared = self.prepared.borrow_mut();
        let known = prepared
            .iter()
            .position(|(known, _)| std::ptr::eq(*known, text));
        let at = match known {
            Some(at) => at,
            None => {
                prepared.push((text, self.conn.prepare(text)?));
                prepared.len() - 1
            }
        };
        let statement = &mut prepared[at].1;
        let changed = statement.execute(values);
        // Bodies are not kept until the next one comes.
        statement.clear_bindings();
        changed
    }
}
