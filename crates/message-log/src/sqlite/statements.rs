//! Prepared statements of the writer, and the durability of its commits.

use std::cell::{Cell, RefCell};

use rusqlite::{Connection, Params, Statement};

use super::options::CommitDurability;

/// Statements that stay prepared. They are found by the address of their text, because a cache by
/// text would hash hundreds of bytes for each use.
pub(super) struct Statements<'c> {
    conn: &'c Connection,
    prepared: RefCell<Vec<(&'static str, Statement<'c>)>>,
    /// Durability that the connection is set to; `None` before the first setting.
    commit: Cell<Option<CommitDurability>>,
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

    /// Sets the durability of the next commit.
    pub fn set_commit(&self, commit: CommitDurability) -> rusqlite::Result<()> {
        if self.commit.get() == Some(commit) {
            return Ok(());
        }
        self.conn
            .pragma_update(None, "synchronous", commit.synchronous())?;
        self.commit.set(Some(commit));
        Ok(())
    }

    /// Reads several times in one transaction, because each read by itself would lock and unlock
    /// the file.
    pub fn in_read_transaction<T>(
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

    /// Runs a statement, and returns the number of changed rows.
    pub fn execute(&self, text: &'static str, values: impl Params) -> rusqlite::Result<usize> {
        let mut prepared = self.prepared.borrow_mut();
        let known = prepared
            .iter()
            .position(|(known, _)| std::ptr::eq(*known, text));
        let index = match known {
            Some(index) => index,
            None => {
                prepared.push((text, self.conn.prepare(text)?));
                prepared.len() - 1
            }
        };
        let statement = &mut prepared[index].1;
        let changed = statement.execute(values);
        // A bound body would stay in memory until the next use.
        statement.clear_bindings();
        changed
    }
}
