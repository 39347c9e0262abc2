//! Parses durations.

use std::time::Duration;

/// Parses `500ms`, `10s`, `2m`, `1h`, `7d`, or bare seconds; more than 0.
///
/// # Errors
/// A message for the user if the text is not a duration.
pub fn parse(text: &str) -> Result<Duration, String> {
    match Duration::try_from_secs_f64(seconds(text)?) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        Ok(_) => Err("it must be greater than zero".to_owned()),
        Err(_) => Err("it is too long".to_owned()),
    }
}

/// As [`parse`], but a number alone is refused: it might mean days.
///
/// # Errors
/// As there.
pub fn with_unit(text: &str) -> Result<Duration, String> {
    match text.trim().parse::<f64>() {
        Ok(_) => Err(format!(
            "write a unit too: {text}s, {text}m, {text}h or {text}d"
        )),
        Err(_) => parse(text),
    }
}

/// Parses the same forms to a number of seconds, which may be 0.
///
/// # Errors
/// A message for the user if the text is not a duration.
pub fn seconds(text: &str) -> Result<f64, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        other => return Err(format!("\"{other}\" is not a unit; use ms, s, m, h or d")),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| "write a number and a unit, as 500ms or 10s".to_owned())?;
    Ok(number * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse("1.5m"), Ok(Duration::from_secs(90)));
        for bad in [
            "",
            "0s",
            "ten",
            "3 weeks",
            "-1s",
            "1e3",
            "999999999999999999999h",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_unit_may_be_demanded() {
        assert_eq!(with_unit("7d"), Ok(Duration::from_secs(7 * 86400)));
        for bad in ["7", "1.5", "", "-7", "7 weeks"] {
            assert!(with_unit(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_time_is_a_number_of_seconds() {
        assert_eq!(seconds("0"), Ok(0.0));
        assert_eq!(seconds("1.5m"), Ok(90.0));
        assert!(seconds("soon").is_err());
    }
}
