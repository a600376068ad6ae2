//! SIGKILL of a service of one process, now and then twice in a row.

use std::time::Instant;

use anyhow::Result;

use super::live::{self, Service};
use super::workload::Workload;
use super::{Outcome, Run};
use crate::random::Random;
use crate::{Rest, TestApp};

struct KillTarget(TestApp);

pub(super) async fn run(mut run: Run) -> Result<Outcome> {
    let mut workload = Workload::start().await;
    let app = TestApp::start_in(&run.folder, &[]).await;
    workload.deploy(&app.api, &app.base).await;
    live::run(&mut run, &mut KillTarget(app), &workload).await
}

impl Service for KillTarget {
    fn api(&self) -> &Rest {
        &self.0.api
    }

    fn addresses(&self) -> Vec<String> {
        vec![self.0.base.clone()]
    }

    async fn disturb(&mut self, random: &mut Random) -> Result<Instant> {
        self.0.kill().await;
        if random.below(4) == 0 {
            self.0.restart().await;
            self.0.kill().await;
        }
        let begun = Instant::now();
        self.0.restart().await;
        Ok(begun)
    }
}
