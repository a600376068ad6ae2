//! How long a search and a page of a list take among many flows, on both databases:
//! `cargo bench -p kanat-store`. `FLOWS` is their number.

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on says so where it stands"
)]

use std::time::{Duration, Instant};

use kanat_model::Timestamp;
use kanat_model::flow::Status;
use kanat_model::id::{AccountId, EnvironmentId, FlowId};
use kanat_model::page::Page;
use kanat_model::search::words;
use kanat_store::account::Account;
use kanat_store::environment::Environment;
use kanat_store::flow::{self, Filter, Flow};
use kanat_store::{Store, account, environment, search_entry};
use kanat_testing_postgres::Database;

const NOW: Timestamp = Timestamp::from_millis(1_769_847_300_123);

/// Flows of one transaction.
const BATCH: usize = 1_000;

/// Times of one query; their median counts.
const ROUNDS: usize = 15;

/// Words of the contract's size of one environment: common ones, rare ones, short beginnings beside
/// them, and words that differ in every flow behind one beginning.
const QUERIES: &[&str] = &[
    "webhook",
    "webhook mapping target",
    "w",
    "so",
    "sou",
    "s webhook",
    "1 webhook",
    "zu webhook",
    "w m t",
    "noun7",
    "noun71 webhook",
    "shop",
    "shop1 webhook",
    "shop77123",
    "absent webhook",
];

/// Lists: the status, the text that is looked for, and the offset. Texts are those of no flow, of
/// few and of all.
const LISTS: &[(Option<Status>, &str, u32)] = &[
    (None, "", 0),
    (None, "", 90_000),
    (Some(Status::Active), "", 0),
    (Some(Status::Active), "", 90_000),
    (Some(Status::Paused), "", 0),
    (None, "absent", 0),
    (None, "NOUN71", 0),
    (None, "shop77123", 0),
    (None, "s", 0),
    (None, "shop", 0),
    (None, "shop", 90_000),
    (Some(Status::Active), "noun71", 0),
    (Some(Status::Active), "shop", 0),
];

#[tokio::main]
async fn main() {
    let flows = std::env::var("FLOWS").map_or(100_000, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kanat.db");
    measure("SQLite", &Store::open_file(&file).await.unwrap(), flows).await;
    let database = Database::fresh();
    let store = Store::open(database.url()).await.unwrap();
    measure("PostgreSQL", &store, flows).await;
}

async fn measure(name: &str, store: &Store, flows: usize) {
    let begun = Instant::now();
    let environment = fill(store, flows).await;
    println!("{name}: {flows} flows in {:?}", begun.elapsed());
    for query in QUERIES {
        let words: Vec<String> = words(query).map(|word| word.normalized).collect();
        let (found, median) = median(async || {
            let mut tx = store.read().await.unwrap();
            let found = search_entry::find(&mut tx, &environment, None, &words).await;
            found.unwrap().len()
        })
        .await;
        println!("{name}: search {query:?} finds {found} in {median:?}");
    }
    for (status, search, offset) in LISTS {
        let filter = Filter {
            status: *status,
            search: (*search).to_owned(),
        };
        let page = Page {
            limit: 50,
            offset: *offset,
        };
        let (total, median) = median(async || {
            let mut tx = store.read().await.unwrap();
            let page = flow::list(&mut tx, &environment, &filter, page).await;
            page.unwrap().total
        })
        .await;
        let status = status.map_or("any", Status::as_str);
        println!("{name}: page at {offset} of {total}, {status}, with {search:?} in {median:?}");
    }
}

/// Runs a read a number of times, and returns its result and the median of its times.
async fn median<T>(read: impl AsyncFn() -> T) -> (T, Duration) {
    let mut times = Vec::new();
    let mut result = read().await;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        result = read().await;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    (result, times[ROUNDS / 2])
}

/// Makes an environment with so many flows.
async fn fill(store: &Store, flows: usize) -> EnvironmentId {
    let account = Account {
        id: AccountId::generate(),
        name: "default".to_owned(),
        created_at: NOW,
    };
    let name = "development".to_owned();
    let mut environment = Environment::new(account.id.clone(), name, NOW);
    environment.is_default = true;
    let mut tx = store.begin().await.unwrap();
    account::insert(&mut tx, &account).await.unwrap();
    environment::insert(&mut tx, &environment).await.unwrap();
    tx.commit().await.unwrap();
    for batch in 0..flows.div_ceil(BATCH) {
        let mut tx = store.begin().await.unwrap();
        for n in batch * BATCH..flows.min((batch + 1) * BATCH) {
            let row = row(n, &environment);
            flow::insert(&mut tx, &row).await.unwrap();
        }
        tx.commit().await.unwrap();
    }
    environment.id
}

/// The flow of a number. Some of its words are those of all flows, some of few.
fn row(n: usize, environment: &Environment) -> Flow {
    let noun = |nth: usize| format!("noun{}", (n * 31 + nth * 7_919) % 2_000);
    let fields: String = (0..20)
        .map(|nth| format!("  {}: source.{} | trim\n", noun(nth), noun(nth + 20)))
        .collect();
    let yaml_config = format!(
        "flow: shop{n}-{}\nversion: 1\nsource:\n  trigger: webhook\nmapping:\n{fields}target:\n  \
         connector: erp\n  endpoint: /orders/{}/in\n  method: POST\nretry: 5 times, exponential\n",
        noun(40),
        noun(41)
    );
    Flow {
        id: FlowId::generate(),
        account_id: environment.account_id.clone(),
        environment_id: environment.id.clone(),
        name: format!("shop{n}-{}", noun(40)),
        description: format!("Sends the {} of a {} on", noun(42), noun(43)),
        status: Status::Active,
        version: 0,
        trigger_kind: "webhook".to_owned(),
        yaml_config,
        sealed_config: None,
        draft: true,
        change_summary: String::new(),
        webhook_token: None,
        revision: 1,
        created_at: NOW,
        updated_at: NOW,
    }
}
