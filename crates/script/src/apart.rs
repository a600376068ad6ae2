//! Work that takes long, apart from the threads on which everything else waits for its turn.

use std::sync::LazyLock;
use std::thread::available_parallelism;

use kanat_mapping::Effort;
use tokio::sync::Semaphore;

use crate::pool::blocking;

/// Steps that an evaluation takes where it stands, some milliseconds: what takes more begins again
/// apart.
const QUICK: u64 = 4_000_000;

/// A core's worth of work at a time for each core: what is quick runs beside it.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = available_parallelism().map_or(1, usize::from);
    Semaphore::new(cores.max(2))
});

/// Runs what takes long apart, in its turn.
pub async fn apart<T>(work: impl FnOnce() -> T) -> T {
    // Nobody closes it.
    let _turn = TURNS.acquire().await.ok();
    blocking(work)
}

/// Evaluates on the spot what takes little, and all else [`apart`]: how much it takes is known only
/// when it is tried, for a short list may be walked once for each of its items.
pub async fn evaluate<T>(effort: &Effort, evaluation: impl Fn(&Effort) -> T) -> T {
    if let Some(value) = quickly(effort, &evaluation) {
        return value;
    }
    apart(|| evaluation(effort)).await
}

/// Evaluates as [`evaluate`] does where nothing can be waited for: what takes long has no turn.
pub fn evaluate_now<T>(effort: &Effort, evaluation: impl Fn(&Effort) -> T) -> T {
    quickly(effort, &evaluation).unwrap_or_else(|| blocking(|| evaluation(effort)))
}

fn quickly<T>(effort: &Effort, evaluation: impl Fn(&Effort) -> T) -> Option<T> {
    let given = effort.left().min(QUICK);
    let quick = Effort::new(given);
    let value = evaluation(&quick);
    (!quick.is_spent()).then(|| {
        effort.spend(given - quick.left());
        value
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn what_takes_long_does_not_hold_up_the_runtime() {
        let (ask, mut asked) = tokio::sync::mpsc::unbounded_channel();
        let (answer, answered) = std::sync::mpsc::channel();
        let answered = Mutex::new(answered);
        let other = async move {
            while asked.recv().await.is_some() {
                answer.send("another task").unwrap();
            }
        };
        let effort = Effort::new(3 * QUICK);
        let long = async move {
            let evaluation = |effort: &Effort| {
                let goes_on = effort.spend(2 * QUICK);
                goes_on.then(|| {
                    ask.send(()).unwrap();
                    let answered = answered.lock().unwrap();
                    answered.recv_timeout(Duration::from_secs(20))
                })
            };
            let seen = evaluate(&effort, evaluation).await;
            (seen, effort.left())
        };
        // Both want the one thread of the runtime.
        let mut others = tokio::task::JoinSet::new();
        others.spawn(other);
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(long);
        let seen = tasks.join_next().await.unwrap().unwrap();
        assert_eq!(seen, (Some(Ok("another task")), QUICK));
    }

    #[tokio::test]
    async fn what_takes_little_is_done_once_where_it_stands() {
        let effort = Effort::default();
        let thread = std::thread::current().id();
        let ran = evaluate(&effort, |effort| {
            effort.spend(7);
            std::thread::current().id()
        });
        assert_eq!(ran.await, thread);
        assert_eq!(effort.left(), Effort::MAX - 7);
    }

    #[tokio::test]
    async fn what_is_spent_stays_spent() {
        let effort = Effort::new(10);
        let evaluation = |effort: &Effort| effort.spend(11);
        assert!(!evaluate(&effort, evaluation).await);
        assert!(effort.is_spent());
        assert!(!evaluate_now(&effort, evaluation));
    }
}
