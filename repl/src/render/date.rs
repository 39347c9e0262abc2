//! Times as dates, in UTC.

use chrono::{DateTime, SecondsFormat};

/// Returns a time given in nanoseconds since 1970 as `2026-11-20T22:10:03Z`.
pub fn date(unix_ns: i64) -> String {
    DateTime::from_timestamp_nanos(unix_ns).to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_date_u() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(date(seconds * 1_000_000_000), expected);
        }
        assert_eq!(date(-1), "1969-12-31T23:59:59Z");
    }
}
