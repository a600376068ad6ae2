//! Accounts: what everything else belongs to.

use kanat_model::Timestamp;
use kanat_model::id::AccountId;

use crate::record::record;
use crate::statement::statements;

record! {
    pub struct Account in "account" {
        pub id: AccountId,
        pub name: String,
        pub created_at: Timestamp,
    }
}

statements! {
    fn insert(..account: &Account);

    /// The account with this id.
    fn get(id: &AccountId) -> Option<Account> = "SELECT {COLUMNS} FROM account WHERE id = $1";

    /// Makes other changes of owners and members of the account wait for the end of this
    /// transaction.
    fn lock(id: &AccountId) = "UPDATE account SET name = name WHERE id = $1";

    /// The oldest account; none before the first start.
    fn first() -> Option<Account> = "SELECT {COLUMNS} FROM account ORDER BY id LIMIT 1";
}
