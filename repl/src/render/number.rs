//! Numbers for people: sizes in decimal units. Exact values belong to `--json` and SQL.

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

/// Returns `total / count` with one decimal; `None` if `count` is 0.
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
    fn sizes_round_up_into_the_next_unit() {
        check(
            &[0, 999, 1000, 2_149_000, 999_949, 999_950, u64::MAX],
            bytes,
            expect!["0 B | 999 B | 1.0 kB | 2.1 MB | 999.9 kB | 1.0 MB | 18.4 EB"],
        );
    }

    #[test]
    fn nothing_per_nothing_is_nothing() {
        assert_eq!(per(5, 0), None);
        assert_eq!(per(89, 10).as_deref(), Some("8.9"));
    }
}
