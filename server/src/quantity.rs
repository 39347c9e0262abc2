//! Quantities for people.

/// Returns a duration given in nanoseconds: `812 ns`, `3.20 us`, `12.3 ms`, `0.41 s`, `2 min 05 s`, `3 h 07 min`.
#[must_use]
pub fn duration(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.2} us", ns as f64 / 1e3),
        1_000_000..100_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        100_000_000..60_000_000_000 => format!("{:.2} s", ns as f64 / 1e9),
        60_000_000_000..3_600_000_000_000 => {
            let s = ns / 1_000_000_000;
            format!("{} min {:02} s", s / 60, s % 60)
        }
        _ => {
            let min = ns / 60_000_000_000;
            format!("{} h {:02} min", min / 60, min % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_keep_about_three_digits() {
        for (ns, text) in [
            (0, "0 ns"),
            (812, "812 ns"),
            (3_200, "3.20 us"),
            (12_345_678, "12.3 ms"),
            (410_000_000, "0.41 s"),
            (59_990_000_000, "59.99 s"),
            (125_000_000_000, "2 min 05 s"),
            (11_220_000_000_000, "3 h 07 min"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }
}
