//! Work that comes due again and again, and is done by one process of several: the first to take up
//! a due time does it.

use kanat_model::Timestamp;

use crate::statement::statements;

statements! {
    /// Takes up the task for a due time; `false` when somebody has taken it up for that time or a
    /// later one.
    fn take(name: &str, due: Timestamp) -> bool =
        "INSERT INTO periodic_task (name, taken_for) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE \
         SET taken_for = excluded.taken_for WHERE periodic_task.taken_for < excluded.taken_for";
}
