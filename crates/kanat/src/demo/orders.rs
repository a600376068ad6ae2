//! The sample orders of `examples/orders`, in the binary so that the demo runs anywhere, and how
//! each of them ends.

/// An order, the flow that it goes through, and its end.
pub struct Order {
    pub title: &'static str,
    /// The JSON document as it is posted.
    pub body: &'static str,
    pub flow: &'static str,
    pub end: End,
}

/// How an order ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Delivered {
        attempts: u32,
    },
    Filtered,
    /// Given up, for an error of this kind.
    DeadLetter {
        kind: &'static str,
    },
    /// Answered as a repeat of the order before it with the same id.
    Duplicate,
}

macro_rules! order {
    ($file:literal, $flow:literal, $title:literal, $end:expr) => {
        Order {
            title: $title,
            body: include_str!(concat!("../../../../examples/orders/", $file, ".json")),
            flow: $flow,
            end: $end,
        }
    };
}

const DELIVERED: End = End::Delivered { attempts: 1 };

/// In the order in which they are posted.
pub const ORDERS: [Order; 16] = [
    order!("01-plain", "order-sync", "A plain order", DELIVERED),
    order!(
        "02-several-items",
        "order-sync",
        "An order with several items",
        DELIVERED
    ),
    order!(
        "03-refund",
        "order-sync",
        "A refund: the total is below zero",
        DELIVERED
    ),
    order!(
        "04-unknown-country",
        "order-sync",
        "A country that the lookup table does not know",
        DELIVERED
    ),
    order!(
        "05-missing-email",
        "order-sync",
        "A required field is missing",
        End::DeadLetter { kind: "mapping" }
    ),
    order!(
        "06-big-integer-id",
        "order-sync",
        "An id that a float would damage",
        DELIVERED
    ),
    order!(
        "07-unicode-names",
        "order-sync",
        "Names in Kazakh, with an emoji",
        DELIVERED
    ),
    order!(
        "01-plain",
        "order-sync",
        "The first order once more, as a shop repeats it",
        End::Duplicate
    ),
    order!(
        "08-zero-total",
        "order-sync",
        "Nothing to pay: the flow's condition is false",
        End::Filtered
    ),
    order!(
        "09-exact-decimals",
        "order-sync",
        "Decimals that a float would round the wrong way",
        DELIVERED
    ),
    order!(
        "10-no-currency",
        "order-sync",
        "No currency, numbers as text, spaces around the country",
        DELIVERED
    ),
    order!(
        "11-no-items",
        "order-sync",
        "A gift card: no items to list",
        DELIVERED
    ),
    order!(
        "12-late-evening-elsewhere",
        "order-sync",
        "Placed late in the evening, which is tomorrow in UTC",
        DELIVERED
    ),
    order!(
        "13-price-on-request",
        "order-sync",
        "A total that is no number",
        End::DeadLetter { kind: "mapping" }
    ),
    order!(
        "14-express",
        "order-express",
        "The courier fails twice, then works",
        End::Delivered { attempts: 3 }
    ),
    order!(
        "15-ledger",
        "order-ledger",
        "The ledger never works",
        End::DeadLetter { kind: "status" }
    ),
];
