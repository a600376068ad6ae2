//! A save that outlives the stream that its plans came on.

use futures::FutureExt;
use kanat_message_log::sqlite::{self, SqliteLog};
use kanat_model::id::EpochId;
use tokio::task::yield_now;
use tonic::body::Body;
use tower::BoxError;

use super::*;
use crate::plans::tests::options;

#[tokio::test]
async fn plans_that_cannot_be_saved_get_their_former_generation_also_when_the_stream_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plans");
    std::fs::write(file, "a file where a folder should be").unwrap();
    let log = SqliteLog::open(
        folder.path().join("messages.db"),
        sqlite::Options::default(),
    )
    .await
    .unwrap();
    let log = Arc::new(log);
    let options = options(folder.path());
    let sealer = Arc::new(Sealer::from_keys(&[[7; 32]]).unwrap());
    let unreachable = |_: http::Request<Body>| async {
        Err::<http::Response<Body>, BoxError>("there is no control plane".into())
    };
    let control = ControlPlanes::new(tower::service_fn(unreachable));
    let plans = Plans::new(log.clone());
    let load = Arc::new(Load::default);
    let client = PlanStreamClient::start(options, plans.clone(), log, sealer, control, load).await;

    let id = EnvironmentId::from("env_1");
    let environment = Environment {
        generation: 1,
        ..Environment::empty(id.clone(), EpochId::from("epoch_1"))
    };
    let generation = || plans.load().environment(&id).unwrap().generation;
    let disk = client.disk.lock();
    let activation = client.activate_and_save(environment, &[], Delta::default());
    // The future is dropped after its first poll, as by a stream that ends.
    assert!(activation.now_or_never().is_none());
    assert_eq!(generation(), 1);
    drop(disk);
    while Arc::strong_count(&client.disk) > 1 {
        yield_now().await;
    }
    assert_eq!(generation(), 0);
}
