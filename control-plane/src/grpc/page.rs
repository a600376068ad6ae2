//! Pages of lists on the wire.

use kanat_model::Error;
use kanat_model::page::{ListPage, Page};
use kanat_proto::v1::Pagination;
use tonic::Status;

use super::status;

/// Returns the part of a list that a request asks for: 50 from the start unless it says otherwise,
/// at most 500.
///
/// # Errors
///
/// `INVALID_ARGUMENT` for a limit of 0.
pub fn asked(limit: Option<u32>, offset: Option<u32>) -> Result<Page, Status> {
    if limit == Some(0) {
        let problem = format!(
            "a page has at least one item; leave it out for {}",
            Page::DEFAULT_LIMIT
        );
        return Err(status::of(Error::field("limit", problem)));
    }
    Ok(Page::new(limit, offset))
}

/// Converts the items of a page, and returns the place of the page in the whole list.
pub fn convert<T, M>(
    result: Result<ListPage<T>, Error>,
    mut item: impl FnMut(T) -> M,
) -> Result<(Vec<M>, Option<Pagination>), Status> {
    try_convert(result, |value| Ok(item(value)))
}

/// Converts the items of a page, of which one may be unreadable.
pub fn try_convert<T, M>(
    result: Result<ListPage<T>, Error>,
    item: impl FnMut(T) -> Result<M, Error>,
) -> Result<(Vec<M>, Option<Pagination>), Status> {
    let paged = result.map_err(status::of)?;
    let pagination = pagination(paged.page, paged.total);
    let items = paged.items.into_iter().map(item).collect::<Result<_, _>>();
    Ok((items.map_err(status::of)?, Some(pagination)))
}

pub fn pagination(page: Page, total: u64) -> Pagination {
    Pagination {
        total: u32::try_from(total).unwrap_or(u32::MAX),
        limit: page.limit,
        offset: page.offset,
        next_cursor: None,
        total_is_least: None,
    }
}

/// The part of a list in memory that `page` asks for.
pub fn cut<T>(items: Vec<T>, page: Page) -> ListPage<T> {
    let total = items.len() as u64;
    let skip = usize::try_from(page.offset).unwrap_or(usize::MAX);
    let take = usize::try_from(page.limit).unwrap_or(usize::MAX);
    ListPage {
        items: items.into_iter().skip(skip).take(take).collect(),
        total,
        page,
    }
}
