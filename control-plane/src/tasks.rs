//! Task group of the control plane: a shutdown ends its jobs, and waits for all that was begun.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Handle of the group; its clones are of the same group.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    stopping: CancellationToken,
    tracker: TaskTracker,
}

impl Tasks {
    /// Runs a job until it ends or the control plane shuts down.
    pub fn run_until_stopped(&self, job: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.stopping.clone();
        self.tracker.spawn(async move {
            stopping.run_until_cancelled(job).await;
        });
    }

    /// Runs work to its end, also when its caller stops waiting for it. A shutdown waits for it.
    pub fn run_to_completion(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(work);
    }

    /// Token that is cancelled when the control plane shuts down: long answers end with it.
    pub fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Begins the shutdown: ends the jobs, the streams of nodes and the long answers.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Begins the shutdown, and waits for every task.
    pub async fn close(&self) {
        self.stop();
        self.tracker.close();
        self.tracker.wait().await;
    }
}
