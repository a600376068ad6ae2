//! A disk without room: a file system in memory that another file fills, now and then with a kill
//! and a start meanwhile.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::live::{self, Service};
use super::workload::Workload;
use super::{Outcome, Run};
use crate::power_loss::{Disk, Writeback};
use crate::random::Random;
use crate::{Rest, TestApp};

/// Size of the disk, beside what a run writes to it.
const LEAST_MIB: u64 = 128;
/// More than the log grows in a second.
const MIB_A_SECOND: u64 = 4;

const LEAST_FULL: Duration = Duration::from_millis(200);
const MAX_FULL: Duration = Duration::from_millis(2_000);

struct Full {
    app: TestApp,
    disk: Mount,
}

/// A mounted file system.
struct Mount(PathBuf);

pub(super) async fn run(mut run: Run) -> Result<Outcome> {
    let mut workload = Workload::start().await;
    let mut app = TestApp::start_in(&run.folder, &[]).await;
    workload.deploy(&app.api, &app.base).await;
    ensure!(
        app.terminate().await == Some(0),
        "the service does not stop"
    );
    let data = Disk::read(&app.data_dir())?;
    fs::remove_dir_all(app.data_dir())?;
    fs::create_dir(app.data_dir())?;
    let disk = match Mount::new(
        &app.data_dir(),
        LEAST_MIB + MIB_A_SECOND * run.extent.time.as_secs(),
    ) {
        Ok(disk) => disk,
        Err(error) => return Ok(Outcome::Skipped(format!("{error:#}"))),
    };
    data.write_image(&Writeback::everything(), &disk.0)?;
    app.restart().await;
    live::run(&mut run, &mut Full { app, disk }, &workload).await
}

impl Service for Full {
    fn api(&self) -> &Rest {
        &self.app.api
    }

    fn addresses(&self) -> Vec<String> {
        vec![self.app.base.clone()]
    }

    async fn disturb(&mut self, random: &mut Random) -> Result<Instant> {
        let filling = self.disk.0.join("filling");
        fill(&filling)?;
        tokio::time::sleep(random.pause(LEAST_FULL, MAX_FULL)).await;
        let pause = random.pause(LEAST_FULL, MAX_FULL);
        let freed = async {
            tokio::time::sleep(pause).await;
            fs::remove_file(filling)?;
            Ok(Instant::now())
        };
        if random.below(3) > 0 {
            return freed.await;
        }
        // A service that starts on a full disk waits for room before it says that it listens.
        self.app.kill().await;
        let (freed, ()) = tokio::join!(freed, self.app.restart());
        freed
    }
}

/// Leaves no room on the disk of this file.
fn fill(path: &Path) -> Result<()> {
    let mut file = File::create(path)?;
    for bytes in [1 << 20, 1 << 12] {
        let zeros = vec![0; bytes];
        while file.write_all(&zeros).is_ok() {}
    }
    Ok(())
}

impl Mount {
    fn new(folder: &Path, mib: u64) -> Result<Self> {
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"])
            .arg(folder);
        let output = mount.output().context("cannot run mount")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "a file system in memory needs root: {}",
            said.trim()
        );
        Ok(Self(folder.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A process that still has a file of it open is about to end.
        let status = Command::new("umount").arg("--lazy").arg(&self.0).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("{} is still mounted", self.0.display());
        }
    }
}
