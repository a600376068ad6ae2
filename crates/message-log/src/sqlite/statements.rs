//! The statements of the writer, which stay prepared.

use std::cell::RefCell;

use rusqlite::{Connection, Params, Statement};

/// Found by where their texts stand in the program: a cache by text hashes hundreds of bytes for each of them.
pub(super) struct Statements<'c> {
    conn: &'c Connection,
    prepared: RefCell<Vec<(&'static str, Statement<'c>)>>,
}

impl<'c> Statements<'c> {
    pub fn new(conn: &'c Connection) -> Self {
        Self { conn, prepared: RefCell::default() }
    }

    pub fn conn(&self) -> &'c Connection {
        self.conn
    }

    /// Runs a statement; says how many rows changed.
    pub fn execute(&self, text: &'static str, values: impl Params) -> rusqlite::Result<usize> {
        let mut prepared = self.prepared.borrow_mut();
        let known = prepared.iter().position(|(known, _)| std::ptr::eq(*known, text));
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
