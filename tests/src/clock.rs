//! The wall clock of a service under test, which the test may set.

use std::io::Write;
use std::path::PathBuf;

use tempfile::TempDir;

/// A wall clock that runs as far beside that of the machine as the test says.
pub struct WallClock {
    folder: TempDir,
}

impl WallClock {
    /// Compiles the library that a service loads in order to read it.
    pub fn new() -> Self {
        let clock = Self {
            folder: TempDir::with_prefix("kanat-clock-").expect("a temporary folder can be made"),
        };
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/clock/clock.c");
        let mut cc = std::process::Command::new("cc");
        cc.args([
            "-std=c17", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o",
        ]);
        let compiled = cc.arg(clock.library()).arg(source).status();
        assert!(
            compiled.expect("a C compiler is there").success(),
            "{source} does not compile"
        );
        clock.set_seconds(0);
        clock
    }

    /// Variables of a service that reads this clock.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        let path = |path: PathBuf| path.to_str().expect("paths of tests are text").to_owned();
        [
            ("LD_PRELOAD", path(self.library())),
            ("KANAT_TEST_CLOCK", path(self.offset())),
        ]
    }

    /// Sets the clock so many seconds ahead of the machine's, from now on.
    pub fn set_seconds(&self, ahead: i64) {
        // In place: the service has mapped the file.
        let options = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.offset());
        options
            .and_then(|mut file| file.write_all(&ahead.to_ne_bytes()))
            .expect("the offset can be written");
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("clock.so")
    }

    fn offset(&self) -> PathBuf {
        self.folder.path().join("offset")
    }
}

impl Default for WallClock {
    fn default() -> Self {
        Self::new()
    }
}
