//! Searches through many messages: they end in time, and hold up no other list.

use std::time::Duration;

use futures::future::{FutureExt, join_all};
use kanat_model::Code;
use kanat_model::id::FlowId;
use kanat_model::page::Page;

use super::File;
use crate::contract::{Subject, message, tenant};
use crate::sqlite::Options;
use crate::sqlite::search::search;
use crate::{Error, Filter, Position};

/// Number of messages for which the search checks the clock several times.
const MESSAGES: usize = 1_000;

#[tokio::test]
async fn a_search_ends_with_its_time_or_its_caller_and_the_next_one_finds() {
    let file = File::new();
    let subject = Subject::open(&file).await;
    let flow = FlowId::generate();
    join_all((0..MESSAGES).map(|_| subject.append(message(&flow)))).await;
    let filter = Filter {
        search: Some("in none of them".to_owned()),
        ..Filter::flow(tenant(), flow)
    };
    let first = Position::Page(Page::new(None, None));
    // A list applies the pending writes to the tables.
    assert_eq!(subject.log.list(&filter, first).await.unwrap().total, 0);

    let searcher = Options::default()
        .open_read_pool(&file.path, 1)
        .await
        .unwrap();
    let late = search(&searcher, &filter, first, Duration::ZERO).await;
    let Err(Error::State(late)) = late else {
        panic!("it took as long as it likes: {late:?}")
    };
    assert_eq!(late.code, Code::DeadlineExceeded);
    let hour = Duration::from_secs(3_600);
    assert!(
        search(&searcher, &filter, first, hour)
            .now_or_never()
            .is_none()
    );
    let found = search(&searcher, &filter, first, hour).await.unwrap();
    assert_eq!(found.total, 0);
    searcher.close().await;
}
