//! Pages of lists on the wire.

use kanat_model::page::{ListPage, Page};
use kanat_model::{Error, FieldError, Result, saturated};
use kanat_proto::v1::{self, Pagination};

/// Returns the part of a list that a request asks for: 50 from the start unless it says otherwise,
/// at most 500.
///
/// # Errors
///
/// The limit is 0.
pub fn asked(limit: Option<u32>, offset: Option<u32>) -> Result<Page> {
    if limit == Some(0) {
        let problem = format!(
            "a page has at least one item; leave it out for {}",
            Page::DEFAULT_LIMIT
        );
        return Err(Error::field("limit", problem));
    }
    Ok(Page::new(limit, offset))
}

/// Returns the part of a list that a request asks for, of a list that takes a cursor too.
///
/// # Errors
///
/// The limit is 0, or the page has two beginnings: a cursor, and an offset that is not 0.
pub fn asked_beside(cursor: Option<&str>, limit: Option<u32>, offset: Option<u32>) -> Result<Page> {
    if cursor.is_some() && offset.is_some_and(|offset| offset > 0) {
        let both = ["cursor", "offset"].map(|field| {
            FieldError::new(
                field,
                "cursor and offset are given: each says where the page begins",
            )
        });
        return Err(Error::invalid(
            "cursor and offset cannot stand together",
            both.to_vec(),
        ));
    }
    asked(limit, offset)
}

/// Message that is listed in pages.
pub trait ListItem: Sized {
    /// Answer that is a page of the list, and nothing else.
    type Answer;

    fn answer(data: Vec<Self>, pagination: Option<Pagination>) -> Self::Answer;
}

macro_rules! list_items {
    ($($item:ident in $answer:ident,)*) => {$(
        impl ListItem for v1::$item {
            type Answer = v1::$answer;

            fn answer(data: Vec<Self>, pagination: Option<Pagination>) -> Self::Answer {
                v1::$answer { data, pagination }
            }
        }
    )*};
}

list_items! {
    Adapter in ListAdaptersResponse,
    AdapterTemplate in ListAdapterTemplatesResponse,
    ApiKey in ListApiKeysResponse,
    BatchJob in ListBatchJobsResponse,
    CatalogAction in ListCatalogActionsResponse,
    CatalogEntry in ListCatalogEntriesResponse,
    ConnectorInstance in ListConnectorInstancesResponse,
    ConsumerKey in ListConsumerKeysResponse,
    EndpointSchema in ListEndpointSchemasResponse,
    Environment in ListEnvironmentsResponse,
    Flow in ListFlowsResponse,
    FlowVersion in ListFlowVersionsResponse,
    LookupTable in ListLookupTablesResponse,
    Node in ListNodesResponse,
    Member in ListMembersResponse,
    Policy in ListPoliciesResponse,
    PublishedApi in ListPublishedApisResponse,
    PublishedApiVersion in ListPublishedApiVersionsResponse,
    Schedule in ListSchedulesResponse,
}

/// Answers with the items of a page, converted.
pub fn answer<T, M: ListItem>(found: ListPage<T>, item: impl FnMut(T) -> M) -> M::Answer {
    let (data, pagination) = convert(found, item);
    M::answer(data, pagination)
}

/// Answers with the items of a page, of which one may be unreadable.
pub fn try_answer<T, M: ListItem>(
    found: ListPage<T>,
    item: impl FnMut(T) -> Result<M>,
) -> Result<M::Answer> {
    let (data, pagination) = convert(found, item);
    let data = data.into_iter().collect::<Result<_, _>>()?;
    Ok(M::answer(data, pagination))
}

/// Converts the items of a page, and returns the place of the page in the whole list.
pub fn convert<T, M>(found: ListPage<T>, item: impl FnMut(T) -> M) -> (Vec<M>, Option<Pagination>) {
    let pagination = pagination(found.page, found.total);
    (
        found.items.into_iter().map(item).collect(),
        Some(pagination),
    )
}

pub fn pagination(page: Page, total: u64) -> Pagination {
    Pagination {
        total: saturated(total),
        limit: page.limit,
        offset: page.offset,
        next_cursor: None,
        total_is_least: None,
    }
}
