//! Prepared statements of the writer, and the durability of its commits.

use std::cell::{Cell, RefCell};

use rusqlite::{Connection, Params, Statement};

use super::options::CommitDurability;

/// Statements that stay prepared. They are found by the address of their text, because a cache by
/// text would hash hundreds of bytes for each use.
pub(super) struct Statements<'c> {
    conn: &'c Connection,
    prepared: RefCell<Vec<(&'static str, Statement<'c>)>>,
    /// Value of SQLite's `synchronous` that the connection has; `None` before the first setting.
    synchronous: Cell<Option<CommitDurability>>,
}

impl<'c> Statements<'c> {
    pub fn new(conn: &'c Connection) -> Self {
        Self {
            conn,
            prepared: RefCell::default(),
            synchronous: Cell::default(),
        }
    }

    pub fn conn(&self) -> &'c Connection {
        self.conn
    }

    /// Sets the durability of the next commits, by SQLite's `synchronous`.
    pub fn set_synchronous(&self, durability: CommitDurability) -> rusqlite::Result<()> {
        if self.synchronous.get() == Some(durability) {
            return Ok(());
        }
        self.conn
            .pragma_update(None, "synchronous", durability.synchronous())?;
        self.synchronous.set(Some(durability));
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
