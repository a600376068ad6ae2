//! Pages of lists on the wire.

use kanat_model::page::{Page, Paged};
use kanat_proto::v1::Pagination;

/// Converts the items of a page, and says where it stands in the whole.
pub fn convert<T, M>(paged: Paged<T>, item: impl FnMut(T) -> M) -> (Vec<M>, Option<Pagination>) {
    let pagination = pagination(paged.page, paged.total);
    (paged.items.into_iter().map(item).collect(), Some(pagination))
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
pub fn cut<T>(items: Vec<T>, page: Page) -> Paged<T> {
    let total = items.len() as u64;
    let skip = usize::try_from(page.offset).unwrap_or(usize::MAX);
    let take = usize::try_from(page.limit).unwrap_or(usize::MAX);
    Paged { items: items.into_iter().skip(skip).take(take).collect(), total, page }
}
