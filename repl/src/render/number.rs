//! Numbers for people: grouped digits, sizes in decimal units. Exact values belong to `--json` and SQL.

/// Returns `value` with a comma between each three digits: `242,785`.
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

/// Returns `value` and the noun, with a plural `s` unless it is one: `1 thread`, `2,000 threads`.
pub fn count(value: u64, noun: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(value))
}

/// Returns a size in decimal units: `812 B`, `2.1 MB`.
pub fn bytes(value: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if value < 1000 {
        return format!("{value} B");
    }
    let mut scaled = value as f64 / 1000.0;
    let mut unit = 0;
    // 999.95 would be printed as "1000.0".
    while scaled >= 999.95 && unit + 1 < UNITS.len() {
        scaled /= 1000.0;
        unit += 1;
    }
    format!("{scaled:.1} {}", UNITS[unit])
}

/// Returns `total / count` with one digit, or `None` when there is nothing to divide by.
pub fn per(total: u64, count: u64) -> Option<String> {
    (count > 0).then(|| format!("{:.1}", total as f64 / count as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(values: &[u64], f: fn(u64) -> String, expected: Expect) {
        let lines: Vec<String> = values.iter().map(|v| f(*v)).collect();
        expected.assert_eq(&lines.join(" | "));
    }

    #[test]
    fn digits_are_grouped_by_three() {
        check(
            &[0, 999, 1000, 242_785, 1_000_000, u64::MAX],
            grouped,
            expect!["0 | 999 | 1,000 | 242,785 | 1,000,000 | 18,446,744,073,709,551,615"],
        );
    }

    #[test]
    fn sizes_round_up_into_the_next_unit() {
        check(
            &[0, 999, 1000, 2_149_000, 999_949, 999_950, u64::MAX],
            bytes,
            expect!["0 B | 999 B | 1.0 kB | 2.1 MB | 999.9 kB | 1.0 MB | 18.4 EB"],
        );
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(count(1, "thread"), "1 thread");
        assert_eq!(count(0, "thread"), "0 threads");
    }

    #[test]
    fn nothing_per_nothing_is_nothing() {
        assert_eq!(per(5, 0), None);
        assert_eq!(per(89, 10).as_deref(), Some("8.9"));
    }
}
