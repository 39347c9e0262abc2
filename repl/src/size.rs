//! Parses memory sizes.

/// Units and their bytes. A name comes before the shorter ones that it ends with.
const UNITS: [(&str, f64); 8] = [
    ("kib", 1024.0),
    ("mib", 1048576.0),
    ("gib", 1073741824.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("tb", 1e12),
    ("b", 1.0),
];
/// The minimum with which any query can run.
const LEAST: f64 = 1048576.0;

/// Parses `512MB`, `8GB` or `1.5GiB`, at least one mebibyte.
///
/// # Errors
/// A message for the user if the text is not a size.
pub fn parse(text: &str) -> Result<usize, String> {
    let lower = text.trim().to_ascii_lowercase();
    let found = UNITS.iter().find_map(|(unit, bytes)| {
        let number: f64 = lower.strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * bytes)
    });
    match found {
        Some(bytes) if (LEAST..1e18).contains(&bytes) => Ok(bytes as usize),
        Some(_) => Err("it must be at least 1MiB".to_owned()),
        None => Err("write a number and a unit, as 512MB or 8GB".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse("512MB"), Ok(512_000_000));
        assert_eq!(parse("1.5 GiB"), Ok(1_610_612_736));
        assert_eq!(parse("2tb"), Ok(2_000_000_000_000));
        for bad in ["", "8", "GB", "-1GB", "nanGB", "1kb", "8 gigs"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
