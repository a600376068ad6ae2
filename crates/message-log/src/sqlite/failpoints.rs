//! Points at which a test lets the process die before or after operations are on disk.

use super::inbox::Operation;
use super::operation::Work;

/// Reaches the points before `operations` are on disk.
pub(super) fn before_commit(operations: &[Operation]) {
    kanat_failpoint::hit_for_each("accept.before_commit", || count_appends(operations));
    kanat_failpoint::hit_for_each("settle.before_commit", || count_settles(operations));
}

/// Reaches the points after `operations` are on disk.
pub(super) fn after_commit(operations: &[Operation]) {
    kanat_failpoint::hit_for_each("accept.after_commit", || count_appends(operations));
    kanat_failpoint::hit_for_each("settle.after_commit", || count_settles(operations));
}

fn count_appends(operations: &[Operation]) -> usize {
    operations
        .iter()
        .filter(|operation| matches!(operation.work, Work::Append(_)))
        .count()
}

fn count_settles(operations: &[Operation]) -> usize {
    operations
        .iter()
        .filter(|operation| matches!(operation.work, Work::Settle(_)))
        .count()
}
