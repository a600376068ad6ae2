//! Work of an operator on a database with PostgreSQL's own programs: backup, restore, and changes
//! of tables.

use crate::{Database, Error, command};

/// A database as it was at one moment, in `pg_dump`'s own format.
pub struct Backup(Vec<u8>);

impl std::fmt::Debug for Backup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Backup({} bytes)", self.0.len())
    }
}

impl Database {
    /// Backs the database up while it is in use.
    pub fn back_up(&self) -> Result<Backup, Error> {
        let mut dump = self.programs()?.command("pg_dump");
        command::pipe(
            dump.args(["--format=custom", "--dbname"]).arg(self.url()),
            &[],
        )
        .map(Backup)
    }

    /// Makes it anew from a backup. Whoever is connected loses the connection, and finds no
    /// database for a while.
    pub fn restore(&self, backup: &Backup) -> Result<(), Error> {
        self.remove()?;
        self.make()?;
        let mut restore = self.programs()?.command("pg_restore");
        restore
            .args([
                "--exit-on-error",
                "--single-transaction",
                "--no-owner",
                "--dbname",
            ])
            .arg(self.url());
        command::pipe(&mut restore, &backup.0).map(drop)
    }

    /// Renames a table, so that reads of it fail.
    pub fn hide_table(&self, name: &str) -> Result<(), Error> {
        self.execute(&format!("ALTER TABLE {name} RENAME TO {name}_hidden"))
    }

    /// Brings back a table that was hidden, or replaced by an empty one.
    pub fn show_table(&self, name: &str) -> Result<(), Error> {
        self.execute(&format!(
            "BEGIN; DROP TABLE IF EXISTS {name}; ALTER TABLE {name}_hidden RENAME TO {name}; COMMIT"
        ))
    }

    /// Replaces a table by an empty one, so that reads of it find nothing.
    pub fn empty_table(&self, name: &str) -> Result<(), Error> {
        self.execute(&format!(
            "BEGIN; ALTER TABLE {name} RENAME TO {name}_hidden; CREATE TABLE {name} (LIKE \
             {name}_hidden INCLUDING ALL); COMMIT"
        ))
    }

    /// Runs statements.
    ///
    /// # Errors
    ///
    /// A statement fails.
    pub fn execute(&self, statements: &str) -> Result<(), Error> {
        let mut psql = self.programs()?.command("psql");
        psql.args([
            "--no-psqlrc",
            "--quiet",
            "--set=ON_ERROR_STOP=1",
            "--command",
            statements,
        ])
        .arg(self.url());
        command::run(&mut psql)
    }
}
