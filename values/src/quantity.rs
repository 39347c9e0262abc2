//! Quantities as text.

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

/// Returns `value` with thousands separators: `242,785`.
#[must_use]
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns `value` and the noun, with a plural `s` unless `value` is one: `1 thread`, `2,000 threads`.
#[must_use]
pub fn count(value: u64, noun: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(value))
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

    #[test]
    fn digits_are_grouped_by_three() {
        for (value, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (242_785, "242,785"),
            (1_000_000, "1,000,000"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(grouped(value), text);
        }
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(count(1, "thread"), "1 thread");
        assert_eq!(count(0, "thread"), "0 threads");
    }
}
