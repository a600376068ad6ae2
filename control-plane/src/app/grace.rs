//! Grace periods: how long a secret that was rotated out is accepted beside the new one.

use std::time::Duration;

use kanat_flow::duration;
use kanat_model::Error;

const MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The grace that `gracePeriod` asks for, such as `24h`; none when it is left out.
pub fn parse(text: Option<&str>) -> Result<Duration, Error> {
    let Some(text) = text else {
        return Ok(Duration::ZERO);
    };
    let grace = duration::parse(text).map_err(|why| Error::field("gracePeriod", why))?;
    if grace > MAX {
        return Err(Error::field("gracePeriod", "is longer than 30d"));
    }
    Ok(grace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grace_is_a_duration_of_a_month_at_most() {
        assert_eq!(parse(None), Ok(Duration::ZERO));
        assert_eq!(parse(Some("24h")), Ok(Duration::from_secs(86_400)));
        assert_eq!(parse(Some("30d")), Ok(MAX));
        for wrong in ["", "31d", "24", "-1h", "a day"] {
            assert_eq!(
                parse(Some(wrong)).unwrap_err().details[0].field,
                "gracePeriod",
                "{wrong}"
            );
        }
    }
}
